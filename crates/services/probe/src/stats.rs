//! Figures of what was measured: spreads, loss processes, reordering, groups.

mod chain;
mod clusters;
mod exponential;
mod gilbert;
mod loss;
mod reordering;
mod spread;
mod vlbi;

pub use clusters::{Cluster, clusters};
pub use exponential::{ExponentialFit, exponential_fit};
pub use gilbert::{GilbertFit, gilbert_fit};
pub use loss::{Character, LossProcess, interval_counts};
pub use reordering::ReorderingStats;
pub use spread::{Bin, Spread, histogram};
pub use vlbi::{Vlbi, VlbiRule};
