//! Wall-clock figures of the hot paths; see `benches/`. A figure is of one machine: name it where it is quoted.
