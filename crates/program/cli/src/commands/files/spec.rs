//! Sources and destinations of a command line: local files, and files of a far node.

use super::screen::TransferRole;
use skyhaul_exit::{Exit, Failure};
use skyhaul_files::wire::Naming;
use skyhaul_files::{RelPath, is_pattern};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A file or folder of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// Of this host.
    Here(PathBuf),
    /// Standard input or output.
    Pipe,
    /// Of a far node; what ends with a `/` is a folder.
    There { node: String, path: RelPath, naming: Naming },
}

/// What a destination lets be: one that ends with a `/` is a folder, whatever is there.
fn naming(text: &[u8]) -> Naming {
    let is_folder = text.ends_with(b"/") || text.ends_with(b"/.");
    if is_folder { Naming::Into } else { Naming::As }
}

impl Named {
    /// As scp has it: what has a `:` before any `/` is of a far node.
    ///
    /// # Errors
    /// A far path leads up, or has a name that no system takes.
    pub fn read(text: &OsStr) -> Result<Self, Failure> {
        let bytes = text.as_bytes();
        if bytes == b"-" {
            return Ok(Self::Pipe);
        }
        let colon = bytes
            .iter()
            .position(|byte| matches!(byte, b':' | b'/'))
            .filter(|at| bytes[*at] == b':');
        let Some(colon) = colon.filter(|at| *at > 0) else {
            return Ok(Self::Here(PathBuf::from(text)));
        };
        let node = String::from_utf8_lossy(&bytes[..colon]).into_owned();
        let path = RelPath::written(&bytes[colon + 1..]).map_err(|error| {
            let what = format!("`{}` cannot be a path of the far node ({error})", text.display());
            Failure::new(
                Exit::Usage,
                &what,
                "write it relative to the folder that the far node serves, without `..`",
            )
        })?;
        Ok(Self::There { node, path, naming: naming(bytes) })
    }
}

/// The sources and the destination of a copy.
#[derive(Debug, PartialEq, Eq)]
pub enum Copy {
    /// Files of this host to a far node's folder, or one of them to a file there.
    Put { sources: Vec<PathBuf>, node: String, target: RelPath, naming: Naming },
    /// Standard input, to a far node's file.
    PutPipe { node: String, file: RelPath },
    /// A far node's files, to a folder here, or one of them to a file here.
    Get { node: String, sources: Vec<RelPath>, into: PathBuf, naming: Naming },
}

impl Copy {
    /// Of the words of a command line, of which the last is where to.
    ///
    /// # Errors
    /// They do not go together.
    pub fn read(words: &[OsString]) -> Result<Self, Failure> {
        let named = words.iter().map(|word| Named::read(word)).collect::<Result<Vec<_>, _>>()?;
        let Some((to, from)) = named.split_last().filter(|(_, from)| !from.is_empty()) else {
            return Err(wrong("the source or the destination is missing"));
        };
        match to {
            Named::There { node, path, naming } => put(from, node, path, *naming),
            Named::Here(into) => get(from, into),
            Named::Pipe => Err(wrong("a far file cannot be written to standard output")),
        }
    }

    /// Which end this is.
    pub const fn role(&self) -> TransferRole {
        match self {
            Self::Put { .. } | Self::PutPipe { .. } => TransferRole::Sending,
            Self::Get { .. } => TransferRole::Receiving,
        }
    }

    /// The far node.
    pub fn node(&self) -> &str {
        match self {
            Self::Put { node, .. } | Self::PutPipe { node, .. } | Self::Get { node, .. } => node,
        }
    }
}

fn put(from: &[Named], node: &str, target: &RelPath, naming: Naming) -> Result<Copy, Failure> {
    let node = node.to_owned();
    if from == [Named::Pipe] {
        if target.is_here() {
            return Err(wrong("standard input needs a file name at the far end"));
        }
        return Ok(Copy::PutPipe { node, file: target.clone() });
    }
    let mut sources = Vec::new();
    for named in from {
        match named {
            Named::Here(path) => sources.push(path.clone()),
            Named::Pipe => {
                return Err(wrong("standard input cannot be copied together with files"));
            }
            Named::There { .. } => return Err(wrong("both ends are far nodes")),
        }
    }
    let is_one = sources.len() == 1 && !target.is_here();
    let naming = if is_one { naming } else { Naming::Into };
    Ok(Copy::Put { sources, node, target: target.clone(), naming })
}

fn get(from: &[Named], into: &Path) -> Result<Copy, Failure> {
    let mut sources = Vec::new();
    let mut of = None;
    for named in from {
        let Named::There { node, path, .. } = named else {
            return Err(wrong("no far node is named"));
        };
        if of.get_or_insert(node) != &node {
            return Err(wrong("files of several far nodes are named"));
        }
        sources.push(path.clone());
    }
    if sources.len() > skyhaul_files::wire::TransferHello::SOURCES_MAX {
        return Err(wrong("more than 1024 far paths are named"));
    }
    let node = of.cloned().ok_or_else(|| wrong("no far node is named"))?;
    let is_one = sources.len() == 1 && !sources.iter().any(|path| path.parts().any(is_pattern));
    let naming = if is_one { naming(into.as_os_str().as_bytes()) } else { Naming::Into };
    Ok(Copy::Get { node, sources, into: into.to_owned(), naming })
}

fn wrong(what: &str) -> Failure {
    let help = "write it like `skyhaul cp FILE… NODE:DIR`, `skyhaul cp NODE:PATH… DIR` or `skyhaul \
               cp - NODE:DIR/NAME`; a file here \
                that has a `:` in its name like ./a:b";
    Failure::new(Exit::Usage, what, help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Copy, Failure> {
        Copy::read(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn far_paths_have_a_node_before_any_slash() {
        let far = |path: &str| RelPath::written(path.as_bytes()).unwrap();
        let put = Copy::Put {
            sources: vec!["./a:b".into(), "c".into()],
            node: "far".to_owned(),
            target: far("in/x"),
            naming: Naming::Into,
        };
        assert_eq!(read(&["./a:b", "c", "far:/in/x/"]).unwrap(), put);
        let (node, naming) = ("far".to_owned(), Naming::Into);
        let get = Copy::Get { node, sources: vec![far("a*"), far("b")], into: ".".into(), naming };
        assert_eq!(read(&["far:a*", "far:b", "."]).unwrap(), get);
        let pipe = Copy::PutPipe { node: "far".to_owned(), file: far("a/b") };
        assert_eq!(read(&["-", "far:a/b"]).unwrap(), pipe);
    }

    #[test]
    fn one_source_may_take_the_name_of_the_target_and_several_or_a_slash_mean_a_folder() {
        for (words, may) in [
            (&["a", "far:dir/b"][..], Naming::As),
            (&["a", "far:dir/b/"], Naming::Into),
            (&["a", "far:"], Naming::Into),
            (&["a", "far:."], Naming::Into),
            (&["a", "c", "far:dir/b"], Naming::Into),
            (&["far:a", "b"], Naming::As),
            (&["far:a", "b/"], Naming::Into),
            (&["far:a*", "b"], Naming::Into),
            (&["far:a", "far:c", "b"], Naming::Into),
        ] {
            let (Copy::Put { naming, .. } | Copy::Get { naming, .. }) = read(words).unwrap() else {
                panic!("{words:?}");
            };
            assert_eq!(naming, may, "{words:?}");
        }
    }

    #[test]
    fn arguments_that_exclude_each_other_are_refused() {
        for (words, part) in [
            (&["far:a"][..], "the source or the destination is missing"),
            (&["a", "b"], "no far node is named"),
            (&["one:a", "two:b", "."], "several far nodes"),
            (&["one:a", "two:b"], "both ends are far"),
            (&["-", "far:"], "needs a file name"),
            (&["-", "a", "far:b"], "together with files"),
            (&["far:a", "-"], "standard output"),
            (&["a", "far:../b"], "cannot be a path"),
        ] {
            let said = read(words).unwrap_err().to_string();
            assert!(said.contains(part), "{words:?}: {said}");
        }
    }
}
