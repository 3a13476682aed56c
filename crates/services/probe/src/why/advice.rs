//! What an operator does about each cause.

pub(super) const APPLICATION: &str = "\
    make the source faster: see whether it reads from a slow disk, waits for answers, or is meant \
    to be this slow";
pub(super) const SENDER_PROCESSOR: &str = "\
    spread the sending over several cores (`--lanes`), let segmentation offload work, or use a \
    faster processor";
pub(super) const RECEIVER_PROCESSOR: &str = "\
    spread the receiving over several cores (`--lanes` at both ends), let receive offload work, \
    or use a faster processor there";
pub(super) const RECEIVER_DISK: &str = "\
    give the receiver a faster disk, or let it write less often (`group_commit`); see with iostat \
    what else uses it";
pub(super) const FLOW_WINDOW: &str = "\
    raise the receiver's window: to rate times round trip at least, twice that for the kernel's \
    TCP (`skyhaul tune`)";
pub(super) const SOCKET_BUFFER: &str = "\
    raise net.core.rmem_max and wmem_max (for TCP tcp_rmem and tcp_wmem) at the end that is \
    named; `skyhaul tune` writes the settings";
pub(super) const CONTROLLER: &str = "\
    use another congestion controller: `adaptive`, or `line` with the line's rate where the line \
    is your own";
pub(super) const DECLARED_RATE: &str = "\
    declare the rate that the line has, or leave it to `adaptive`";
pub(super) const RANDOM_LOSS: &str = "\
    have the line mended; until then use a controller that does not take loss for congestion \
    (`adaptive`, `line`, or the kernel's bbr)";
pub(super) const POLICER: &str = "\
    ask the provider for the rate that was agreed on; until then declare a rate just below the \
    policer's";
pub(super) const QUEUEING: &str = "\
    stop filling the queue: use `adaptive`, declare a rate just below the line's, or shape before \
    the modem (fq_codel, cake)";
pub(super) const MTU_BLACK_HOLE: &str = "\
    send shorter packets (`--mtu`, udp_payload; for TCP lower the route's mtu or set \
    tcp_mtu_probing = 1), and have ICMP \"fragmentation needed\" let through";
pub(super) const HOST_DROPS: &str = "\
    enlarge the card's ring (ethtool -G) and net.core.netdev_max_backlog, and spread interrupts \
    over cores; `skyhaul tune` says what is there";
pub(super) const ROUTE_CHANGE: &str = "\
    ask the network's operator why the route changed; where it flaps, pin it, or use several \
    paths";
pub(super) const CLOCK_STEP: &str = "\
    let NTP or PTP slew the clocks and not step them; one-way figures from before and after do \
    not compare";
pub(super) const LINE_FULL: &str = "\
    nothing: only a faster line, a second path or less data would help";
pub(super) const OTHER_TRAFFIC: &str = "\
    see what else goes over the line (the router's counters, a flow collector), and share it by \
    rule: classes at the router, fq_codel or cake before the modem; or use a line of your own";
pub(super) const REORDERING: &str = "\
    have flows kept to one way (hash by addresses and ports, not by packet), and link layers \
    deliver in order";
pub(super) const JITTER: &str = "\
    find the hop whose delay varies (`skyhaul probe` along the way); on radio links, scheduling \
    and repetition of the link layer make it";
pub(super) const OUTAGE: &str = "\
    see what cut the line then: the modem's log, weather, a handover; a second path carries on \
    meanwhile";
pub(super) const OTHER_END: &str = "\
    ask at the sending end, which knows what it waits for (`skyhaul why` there), and have the \
    line probed";
