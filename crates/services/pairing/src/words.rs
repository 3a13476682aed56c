//! The words of pairing codes: 256 of four to seven letters, so that one is eight bits.
//!
//! Any two differ in two letters at least, and none begins with another: a word that was heard or
//! typed wrong is none of the list.

/// In alphabetical order.
pub const WORDS: [&str; 256] = [
    "acorn", "agent", "album", "anchor", "angle", "anvil", "apple", "apron", "arch", "atlas",
    "bacon", "badge", "baker", "balcony", "bamboo", "banjo", "barley", "basket", "beaver", "bench",
    "berry", "bicycle", "bishop", "blanket", "blossom", "bonfire", "boulder", "breeze", "bridge",
    "broom", "bucket", "buffalo", "butter", "button", "cabin", "cactus", "camel", "camera",
    "candle", "canoe", "canvas", "carpet", "carrot", "castle", "cello", "chalk", "cherry", "chess",
    "chimney", "circus", "clover", "coffee", "comet", "compass", "copper", "coral", "cotton",
    "cousin", "crayon", "cricket", "crystal", "curtain", "cushion", "cypress", "daisy", "dancer",
    "desert", "diamond", "dolphin", "donkey", "dragon", "drum", "eagle", "easel", "echo", "elbow",
    "emerald", "engine", "falcon", "feather", "fennel", "fiddle", "figure", "finger", "flute",
    "forest", "fossil", "galaxy", "garden", "garlic", "gazelle", "giraffe", "glacier", "goblet",
    "gondola", "granite", "guitar", "hammer", "harvest", "hazel", "hedge", "helmet", "heron",
    "hickory", "horizon", "hunter", "iceberg", "igloo", "indigo", "insect", "island", "ivory",
    "jacket", "jaguar", "jasmine", "jewel", "journal", "jungle", "kayak", "kernel", "kettle",
    "kiwi", "koala", "ladder", "lagoon", "lantern", "laurel", "lemon", "leopard", "library",
    "lilac", "lizard", "llama", "lobster", "locket", "lunar", "lyric", "magnet", "mango", "maple",
    "marble", "meadow", "melon", "mirror", "mitten", "mosaic", "mustard", "napkin", "nectar",
    "needle", "nickel", "noodle", "north", "nutmeg", "oasis", "ocean", "octopus", "olive", "onion",
    "orbit", "orchid", "otter", "oxygen", "oyster", "paddle", "palace", "panda", "papaya",
    "pastel", "peanut", "pebble", "pelican", "pencil", "penguin", "pepper", "piano", "picnic",
    "pirate", "planet", "plaza", "poet", "pollen", "pony", "poppy", "prairie", "prism", "puzzle",
    "pyramid", "quarry", "quartz", "quilt", "rabbit", "radish", "raft", "rainbow", "raisin",
    "raven", "reef", "ribbon", "river", "robin", "rowboat", "ruby", "saffron", "salmon", "sandal",
    "scarf", "shadow", "silver", "sleigh", "snow", "sonnet", "sparrow", "spiral", "spruce",
    "squid", "stable", "statue", "summit", "sunset", "swan", "symbol", "tablet", "teapot",
    "temple", "thistle", "thunder", "tiger", "tomato", "topaz", "tower", "trumpet", "tulip",
    "tundra", "tunnel", "turnip", "turtle", "unicorn", "valley", "vanilla", "velvet", "village",
    "violet", "violin", "volcano", "wagon", "walnut", "walrus", "wheel", "window", "winter",
    "yellow", "yogurt", "zebra", "zephyr", "zigzag",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(one: &str, other: &str) -> usize {
        let other: Vec<char> = other.chars().collect();
        let mut costs: Vec<usize> = (0..=other.len()).collect();
        for (row, letter) in one.chars().enumerate() {
            let mut before = costs[0];
            costs[0] = row + 1;
            for column in 0..other.len() {
                let replaced = before + usize::from(letter != other[column]);
                before = costs[column + 1];
                costs[column + 1] = replaced.min(before + 1).min(costs[column] + 1);
            }
        }
        costs[other.len()]
    }

    #[test]
    fn no_word_is_taken_for_another() {
        assert!(WORDS.is_sorted());
        for (place, word) in WORDS.iter().enumerate() {
            assert!((4..=7).contains(&word.len()), "{word}");
            assert!(word.bytes().all(|letter| letter.is_ascii_lowercase()), "{word}");
            for other in &WORDS[place + 1..] {
                assert!(changes(word, other) >= 2, "{word} {other}");
                assert!(!other.starts_with(word), "{word} {other}");
            }
        }
    }
}
