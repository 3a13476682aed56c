//! The files of the page.

/// A file of the page, in the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFile {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub media: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! page_files {
    ($($name:literal $media:expr),* $(,)?) => {
        /// All files of the page.
        pub const PAGE_FILES: &[PageFile] = &[
            $(PageFile {
                name: $name,
                media: $media,
                bytes: include_bytes!(concat!("page/", $name)),
            }),*
        ];
    };
}

page_files! {
    "index.html" "text/html; charset=utf-8",
    "page.css" "text/css; charset=utf-8",
    "icon.svg" "image/svg+xml",
    "main.js" SCRIPT,
    "live.js" SCRIPT,
    "session.js" SCRIPT,
    "orders.js" SCRIPT,
    "admin.js" SCRIPT,
    "why.js" SCRIPT,
    "details.js" SCRIPT,
    "show.js" SCRIPT,
    "plot.js" SCRIPT,
    "now.js" SCRIPT,
    "contacts.js" SCRIPT,
    "lists.js" SCRIPT,
    "measures.js" SCRIPT,
    "nodes.js" SCRIPT,
    "history.js" SCRIPT,
    "events.js" SCRIPT,
    "latency.js" SCRIPT,
    "passes.js" SCRIPT,
}

impl PageFile {
    /// Its entity tag: of its content.
    pub fn tag(&self) -> String {
        // FNV-1a, 64 bits: it tells releases apart, nothing more.
        let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = self.bytes.iter().fold(0xcbf2_9ce4_8422_2325, add);
        format!("\"{hash:016x}\"")
    }
}
