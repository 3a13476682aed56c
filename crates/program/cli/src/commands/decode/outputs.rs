//! The files that decoded frames and packets are written to.

use super::Decode;
use skyhaul_ccsds::extract::ExtractedPacket;
use skyhaul_ccsds::id::Channel;
use skyhaul_ccsds::quality::CapturedFrame;
use skyhaul_exit::{Exit, Failure};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Where frames and packets are written.
pub struct Outputs {
    pub frames: FrameFile,
    pub packets: PacketFiles,
}

/// What writes frames and packets, each on a thread of its own.
pub struct Writers<'o> {
    pub frames: &'o mut FrameFile,
    pub packets: &'o mut PacketFiles,
}

/// The file of all good frames in order. The first failure of a write is kept and reported at the
/// end.
pub struct FrameFile {
    /// `None` where frames are not written.
    file: Option<(BufWriter<File>, PathBuf)>,
    failed: Option<Failure>,
}

/// One file of packets for each virtual channel. The first failure of a write is kept and reported
/// at the end.
pub struct PacketFiles {
    /// `None` where packets are not written.
    folder: Option<PathBuf>,
    /// What the names of the present input's files begin with.
    stem: String,
    files: BTreeMap<Channel, BufWriter<File>>,
    failed: Option<Failure>,
}

/// Written at once: a system call costs as much as a kilobyte.
const WRITE_SIZE: usize = 64 << 10;

impl Outputs {
    /// Opens what the command wants to be written.
    ///
    /// # Errors
    /// An output that cannot be written, or two that would be one file.
    pub fn open(command: &Decode) -> Result<Self, Failure> {
        let mut stems = BTreeSet::new();
        if let Some(twice) = command.files.iter().find(|file| !stems.insert(stem(file)))
            && command.packets_out.is_some()
            && !command.select
        {
            let help = "decode them one by one into different folders";
            let what = "two inputs have the same name, and so would their packet files";
            return Err(Failure::new(Exit::Usage, what, help).at(&twice.display().to_string()));
        }
        if let Some(folder) = &command.packets_out {
            std::fs::create_dir_all(folder).map_err(|source| refused(folder, source))?;
        }
        let frames = command.frames_out.as_ref().map(|path| match File::create(path) {
            Ok(file) => Ok((BufWriter::with_capacity(WRITE_SIZE, file), path.clone())),
            Err(source) => Err(refused(path, source)),
        });
        Ok(Self {
            frames: FrameFile { file: frames.transpose()?, failed: None },
            packets: PacketFiles {
                folder: command.packets_out.clone(),
                stem: String::new(),
                files: BTreeMap::new(),
                failed: None,
            },
        })
    }

    /// Begins the next input.
    pub fn begin(&mut self, file: &Path) {
        self.packets.flush();
        self.packets.stem = stem(file);
    }

    /// What writes the present input's frames and packets.
    pub const fn writers(&mut self) -> Writers<'_> {
        Writers { frames: &mut self.frames, packets: &mut self.packets }
    }

    /// Ends all files.
    ///
    /// # Errors
    /// The first write that failed.
    pub fn close(mut self) -> Result<(), Failure> {
        self.packets.flush();
        self.frames.flush();
        self.packets.failed.or(self.frames.failed).map_or(Ok(()), Err)
    }
}

impl FrameFile {
    /// Writes a good frame.
    pub fn write(&mut self, frame: &CapturedFrame) {
        let Some((file, path)) = &mut self.file else { return };
        if frame.is_good() {
            note(file.write_all(&frame.bytes), path, &mut self.failed);
        }
    }

    fn flush(&mut self) {
        if let Some((file, path)) = &mut self.file {
            note(file.flush(), path, &mut self.failed);
        }
    }
}

impl PacketFiles {
    /// Writes a packet.
    pub fn write(&mut self, packet: &ExtractedPacket) {
        let Some(folder) = &self.folder else { return };
        if !self.files.contains_key(&packet.channel) {
            let Channel { scid, vcid } = packet.channel;
            let name = format!("{}-scid{}-vcid{}.packets", self.stem, scid.value(), vcid.value());
            match File::create(folder.join(name)) {
                Ok(file) => {
                    self.files.insert(packet.channel, BufWriter::with_capacity(WRITE_SIZE, file));
                }
                Err(source) => return note(Err(source), folder, &mut self.failed),
            }
        }
        let written = self
            .files
            .get_mut(&packet.channel)
            .map_or(Ok(()), |file| file.write_all(&packet.bytes));
        note(written, folder, &mut self.failed);
    }

    fn flush(&mut self) {
        let flushed =
            std::mem::take(&mut self.files).into_values().try_for_each(|mut file| file.flush());
        note(flushed, self.folder.as_deref().unwrap_or(Path::new("")), &mut self.failed);
    }
}

/// Keeps the first failure.
fn note(written: io::Result<()>, place: &Path, failed: &mut Option<Failure>) {
    if let (Err(source), None) = (written, &failed) {
        *failed = Some(refused(place, source));
    }
}

fn stem(file: &Path) -> String {
    file.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned())
}

fn refused(place: &Path, source: io::Error) -> Failure {
    let help = "give a writable path on a disk with free space";
    Failure::io("the output cannot be written", &place.display().to_string(), help, source)
}
