//! The line shared otherwise while blocks wait: they go on under the new classes.

use skyhaul_lab::PlainLine;
use skyhaul_lab::world::WorldPath;
use skyhaul_lab::world::{Bulk, Sink, World, WorldConfig};
use skyhaul_transport::{
    Block, ClassId, ClassTree, ClassesConfig, FlowId, PolicyConfig, SessionConfig,
};
use skyhaul_units::{Duration, Rate};

fn classes(text: &str) -> ClassTree {
    let config: ClassesConfig = toml::from_str(text).expect("classes");
    ClassTree::new(&config).expect("a tree")
}

#[test]
fn what_waits_goes_on_in_the_class_of_its_name_or_in_the_default_one() {
    let before = classes("[[class]]\nname = \"gone\"\n[[class]]\nname = \"kept\"\n");
    let after = classes(
        "default = \"other\"\n[[class]]\nname = \"kept\"\n[[class]]\nname = \"other\"\nceiling = \
        \"1 Mbit/s\"\n",
    );
    let line = PlainLine { rate: Rate::from_mbps(8), ..PlainLine::default() };
    let config = WorldConfig::alike(SessionConfig { classes: before, ..SessionConfig::default() });
    let idle = Bulk::of(Block::reliable(FlowId(0), vec![0].into()), 0);
    let mut world = World::new(config, &[WorldPath::new(line)], 3, idle, Sink::default());
    assert!(world.open());
    let now = world.now();
    let session = &mut world.near.session;
    // A megabyte each, which takes a second each.
    for (flow, class) in [(1, ClassId(0)), (2, ClassId(1))] {
        for _ in 0..10 {
            let block = Block::reliable(FlowId(flow), vec![7; 100_000].into());
            session.send(now, Block { class, ..block }).expect("there is room");
        }
    }
    session.sender_mut().share(after, PolicyConfig::Fifo {});
    world.touch();
    world.run_for(Duration::from_secs(3), |_| false);
    let sent = |name: &str| {
        let tree = world.near.session.sender().classes();
        tree.counters(tree.find(name).expect("a class")).sent.as_u64()
    };
    assert!(sent("kept") > 1_000_000, "{}", sent("kept"));
    assert!((250_000..450_000).contains(&sent("other")), "held at 1 Mbit/s: {}", sent("other"));
    world.run_for(Duration::from_secs(10), |_| false);
    assert_eq!(world.far.user.blocks(), 20);
}
