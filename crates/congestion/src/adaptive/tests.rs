//! The controller told of packets by hand; how it does on whole lines is tested in the lab.
