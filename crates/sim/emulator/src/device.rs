//! A TUN device of one end of a link.
#![allow(
    unsafe_code,
    reason = "the device is set up by three calls of ioctl(2), for which no library here has a form"
)]

use crate::EmulatorError;
use crate::packet::{self, Segment};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// One end of a link: what the kernel sends out on it is read, what is written comes in on it.
#[derive(Debug)]
pub(crate) struct Device {
    file: File,
    joined: Vec<u8>,
}

impl Device {
    /// Makes the device in the namespace of the calling thread. It goes when this value does.
    pub fn create(name: &str) -> Result<Self, EmulatorError> {
        let refused = |what: &str, source| EmulatorError::system(&format!("{what} {name}"), source);
        let file = File::options().read(true).write(true).open("/dev/net/tun");
        let file = file.map_err(|error| refused("open /dev/net/tun for the device", error))?;
        let mut request = Request { name: [0; libc::IFNAMSIZ], flags: 0, rest: [0; 22] };
        for (place, byte) in request.name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
            *place = byte;
        }
        request.flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        // SAFETY: the descriptor is open, and the kernel reads and writes one `ifreq`, which
        // `Request` has the size of.
        let made = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
        if made < 0 {
            return Err(refused("make the device", io::Error::last_os_error()));
        }
        let device = Self { file, joined: Vec::new() };
        device.offload().map_err(|error| refused("set offloads of the device", error))?;
        let flags = fcntl_getfl(&device.file)
            .and_then(|flags| fcntl_setfl(&device.file, flags | OFlags::NONBLOCK));
        flags.map_err(|errno| refused("set the device to not block", errno.into()))?;
        Ok(device)
    }

    /// Leaves checksums and segmentation to us: all that this kernel knows of TCP and, from Linux
    /// 6.2 on, of UDP.
    fn offload(&self) -> io::Result<()> {
        let tcp = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
        let with_udp = tcp | libc::TUN_F_USO4 | libc::TUN_F_USO6;
        let mut last = Ok(());
        for offloads in [with_udp, tcp] {
            // SAFETY: the descriptor is open, and this call takes a number.
            let set = unsafe {
                libc::ioctl(
                    self.file.as_raw_fd(),
                    libc::TUNSETOFFLOAD as _,
                    libc::c_ulong::from(offloads),
                )
            };
            if set >= 0 {
                return Ok(());
            }
            last = Err(io::Error::last_os_error());
        }
        last
    }

    /// Reads one packet, which may stand for several; `None` where there is none now.
    pub fn receive<'a>(&mut self, room: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
        match self.file.read(room) {
            Ok(length) => Ok(Some(&room[..length])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hands packets to the kernel, as many at once as may be. Gives how many it refused.
    pub fn send(&mut self, mut rest: &[Segment]) -> u64 {
        let mut refused = 0;
        while !rest.is_empty() {
            let (run, later) = rest.split_at(packet::next_run(rest));
            packet::join(run, &mut self.joined);
            refused += if self.file.write(&self.joined).is_ok() { 0 } else { run.len() as u64 };
            rest = later;
        }
        refused
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// `struct ifreq` of `netdevice(7)`, as `TUNSETIFF` uses it: 40 bytes.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest: [u8; 22],
}

/// Asks for a share of the processor before ordinary programs, so that packets leave when they are
/// due. Where the system refuses, departures are that much less even.
pub(crate) fn be_punctual() {
    // The system's own `struct sched_param`: this number. Not by the C library: musl's asks for
    // nothing, and its structure has more fields.
    let priority: libc::c_int = PRIORITY;
    let (call, this) = (libc::SYS_sched_setscheduler, 0 as libc::pid_t);
    // SAFETY: the structure is whole and outlives the call.
    let _ = unsafe { libc::syscall(call, this, libc::SCHED_RR, &raw const priority) };
}

/// The lower end of the real-time priorities: before every ordinary program, behind what a system
/// itself needs.
const PRIORITY: libc::c_int = 5;
