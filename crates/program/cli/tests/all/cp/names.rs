//! The names under which copied files and folders are stored.

use super::*;

fn contents(ends: &Ends, name: &str) -> String {
    fs::read_to_string(ends.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn an_uploaded_file_takes_the_given_name_or_goes_into_the_folder_of_that_name() {
    let ends = Ends::new(&["--write"]);
    // Different lengths, because the modification times may be equal.
    for (name, bytes) in [("a", "a"), ("c", "see")] {
        fs::write(ends.path("near").join(name), bytes).unwrap();
    }
    // Copied twice: the second copy finds the file under that name, and does not make a folder.
    assert_eq!(ends.copied(&["a", "far:dir/b"])["copied"], 1);
    assert_eq!(ends.copied(&["a", "far:dir/b"])["unchanged"], 1);
    assert_eq!(contents(&ends, "far/dir/b"), "a");
    assert_eq!(ends.copied(&["c", "far:dir/b"])["copied"], 1, "a file of that name is replaced");
    assert_eq!(contents(&ends, "far/dir/b"), "see");
    ends.copied(&["a", "far:dir"]);
    assert_eq!(contents(&ends, "far/dir/a"), "a");
    ends.copied(&["a", "far:new/"]);
    assert_eq!(contents(&ends, "far/new/a"), "a", "a slash at the end means a folder");
    ends.copied(&["a", "c", "far:both"]);
    assert_eq!(contents(&ends, "far/both/c"), "see", "several need a folder");
    let dry = ends.cp(&["a", "far:dry/b", "--dry-run"]);
    assert!(text(&dry.stdout).contains("would copy b"), "{}", text(&dry.stdout));
    assert!(!ends.path("far/dry").exists());
    assert_no_parts(&ends.path("far/dir"));
}

#[test]
fn a_downloaded_file_takes_the_given_name_or_goes_into_the_folder_of_that_name() {
    let ends = Ends::new(&[]);
    fs::create_dir_all(ends.path("far/folder/in")).unwrap();
    for name in ["far/a", "far/folder/in/x"] {
        fs::write(ends.path(name), name).unwrap();
    }
    assert_eq!(ends.copied(&["far:a", "dir/b"])["copied"], 1);
    assert_eq!(ends.copied(&["far:a", "dir/b"])["unchanged"], 1);
    assert_eq!(contents(&ends, "near/dir/b"), "far/a");
    ends.copied(&["far:a", "dir"]);
    assert_eq!(contents(&ends, "near/dir/a"), "far/a");
    ends.copied(&["far:a", "new/"]);
    assert_eq!(contents(&ends, "near/new/a"), "far/a", "a slash at the end means a folder");
    ends.copied(&["far:a*", "fits"]);
    assert_eq!(contents(&ends, "near/fits/a"), "far/a", "a pattern may fit several");
    let absent = ends.cp(&["far:absent", "nothing"]);
    assert_told(&absent, 4, &["absent cannot be sent"]);
    assert!(!ends.path("near/nothing").exists());
}

#[test]
fn a_copied_folder_keeps_its_name_so_that_the_same_command_resumes_it() {
    let ends = Ends::new(&["--write"]);
    fs::create_dir_all(ends.path("near/folder/in")).unwrap();
    fs::write(ends.path("near/folder/in/x"), "x").unwrap();
    for (copied, unchanged) in [(1, 0), (0, 1)] {
        let account = ends.copied(&["folder", "far:to"]);
        assert_eq!(
            (&account["copied"], &account["unchanged"]),
            (&copied.into(), &unchanged.into())
        );
        assert_eq!(contents(&ends, "far/to/folder/in/x"), "x");
        let account = ends.copied(&["far:to/folder", "back"]);
        assert_eq!(
            (&account["copied"], &account["unchanged"]),
            (&copied.into(), &unchanged.into())
        );
        assert_eq!(contents(&ends, "near/back/folder/in/x"), "x");
    }
}
