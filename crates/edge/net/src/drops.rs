//! Datagrams that the kernel dropped at a socket because they were not read in time.

use std::io;
use std::os::fd::AsFd;

/// A socket's inode number, by which the kernel's tables name it.
///
/// # Errors
/// As the system says.
pub fn inode(socket: &impl AsFd) -> io::Result<u64> {
    Ok(rustix::fs::fstat(socket)?.st_ino)
}

/// Datagrams dropped at the UDP sockets whose inode numbers `counts` accepts; `None` if the system
/// does not tell.
pub fn kernel_drops(counts: impl Fn(u64) -> bool) -> Option<u64> {
    let tables = ["/proc/net/udp", "/proc/net/udp6"].map(std::fs::read_to_string);
    if tables.iter().all(Result::is_err) {
        return None;
    }
    let lines = tables.iter().flatten().flat_map(|table| table.lines());
    Some(
        lines
            .filter_map(drops_of)
            .filter(|(inode, _)| counts(*inode))
            .map(|(_, drops)| drops)
            .sum(),
    )
}

/// Inode and drops of a line of the kernel's socket table; `None` for its heading.
fn drops_of(line: &str) -> Option<(u64, u64)> {
    let mut columns = line.split_ascii_whitespace();
    let inode = columns.nth(9)?.parse().ok()?;
    let drops = columns.next_back()?.parse().ok()?;
    Some((inode, drops))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    #[test]
    fn drops_are_read_from_the_kernels_table() {
        let heading = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when \
                      retrnsmt   uid  timeout inode ref pointer drops";
        let line = "  812: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 \
                   00000000   101        0 20123 2 0000000000000000 17";
        assert_eq!(drops_of(heading), None);
        assert_eq!(drops_of(line), Some((20_123, 17)));
    }

    #[test]
    fn a_socket_that_is_not_read_drops() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let inode = inode(&socket).unwrap();
        assert_eq!(kernel_drops(|other| other == inode), Some(0));
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        // Far more than a socket's default buffer holds.
        for _ in 0..2_000 {
            sender.send_to(&[0; 1_400], socket.local_addr().unwrap()).unwrap();
        }
        assert!(kernel_drops(|other| other == inode).is_some_and(|drops| drops > 0));
    }
}
