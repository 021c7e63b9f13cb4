#!/usr/bin/perl
# The process that does the work of the files API: one for each operation under way, started by the node as root.
#
#   helper.pl [join <file> ...] live <pid>
#       enters the mount and user namespace of the machine whose first process has that pid
#   helper.pl [join <file> ...] [machine <pid>] [volume|read-only-volume <folder> <path> ...]
#           mounted <root> <first host id> [<covered path> ...]
#       makes such namespaces of its own around the mounted root of a machine that is stopped, or that cannot be entered
#       and is given; covered paths are shown empty, and volumes where they are inside
#
# Before that it joins cgroups, by writing 0 to each file. Then it becomes the machine's agent (1000:1000), without
# any capability, for good. From there on a path means to it what it means to a command in the machine, and it may do
# what such a command may. All its paths are resolved by the kernel inside the machine's root, and no descriptor of
# the host is left but its two pipes: there is no `..`, link or race that could lead out. What the machine must not
# get at is this process: it is in none of the machine's pid namespaces, so nothing in there can name, trace or signal
# it; its freezer is not the machine's, so it works while that stands still; and a seccomp filter takes away what it
# does not need.
#
# Only modules of perl-base, loaded before it enters; nothing is ever loaded from the machine.
#
# Talk on stdin and stdout, in frames: one letter, length (u32, big endian), payload. A payload of fields is a sequence
# of length (u32) and bytes. The letters: Q a request (fields: operation, arguments); O done (fields); E refused (fields:
# word, text). Of `get`, the bytes follow the O without frames. Of `put`: after the O come D pieces, then F (sync; O),
# then C (commit; O with the entry) or, instead of F or C, X (give up; E). An E ends a `put`; up to the next F, C or X
# what still comes is dropped.
use strict;
use warnings;
use Config;
use Errno ();
use Fcntl ();

use constant {
  AGENT_ID => 1000,
  PIECE_BYTES => 1 << 20,
  MAX_REQUEST_BYTES => 1 << 16,
  MAX_SCANNED => 1_000_000,
  MAX_LINKS => 40,
  # Folders inside of each other that are held open while a tree is removed.
  MAX_DEPTH => 128,
  MAX_REMOVE_SECS => 300,
  MAX_ADDRESS_BYTES => 512 << 20,
  MAX_OPEN_FILES => 256,
  AT_FDCWD => -100,
  AT_SYMLINK_NOFOLLOW => 0x100,
  AT_REMOVEDIR => 0x200,
  AT_EMPTY_PATH => 0x1000,
  RESOLVE_NO_MAGICLINKS => 0x02,
  RENAME_NOREPLACE => 1,
  O_PATH => 010000000,
  O_CLOEXEC => 02000000,
  O_TMPFILE => 020000000 | Fcntl::O_DIRECTORY,
  O_DIRECTORY => Fcntl::O_DIRECTORY,
  O_NOFOLLOW => Fcntl::O_NOFOLLOW,
  O_NONBLOCK => Fcntl::O_NONBLOCK,
  O_NOCTTY => Fcntl::O_NOCTTY,
  O_WRONLY => Fcntl::O_WRONLY,
  O_CREAT => Fcntl::O_CREAT,
  O_EXCL => Fcntl::O_EXCL,
  S_IFMT => 0170000,
  S_IFDIR => 0040000,
  S_IFREG => 0100000,
  S_IFLNK => 0120000,
  CLONE_NEWNS => 0x00020000,
  CLONE_NEWUSER => 0x10000000,
  MS_RDONLY => 1,
  MS_NOSUID => 2,
  MS_NODEV => 4,
  MS_NOEXEC => 8,
  MS_REMOUNT => 32,
  MS_BIND => 4096,
  MS_REC => 16384,
  MS_PRIVATE => 1 << 18,
  AT_RECURSIVE => 0x8000,
  OPEN_TREE_CLONE => 1,
  MOVE_MOUNT_F_EMPTY_PATH => 4,
  MOUNT_ATTR_RDONLY => 1,
  MOUNT_ATTR_NOSUID => 2,
  MOUNT_ATTR_NODEV => 4,
  MNT_DETACH => 2,
};

# Numbers of system calls: x86_64, aarch64.
my %NUMBERS = (
  read => [0, 63], write => [1, 64], close => [3, 57], lseek => [8, 62], sendfile => [40, 71], fsync => [74, 82],
  fchmod => [91, 52], fstatfs => [138, 44], syncfs => [306, 267], fallocate => [285, 47], getdents64 => [217, 61],
  openat => [257, 56], openat2 => [437, 437], mkdirat => [258, 34], unlinkat => [263, 35], linkat => [265, 37],
  readlinkat => [267, 78], faccessat => [269, 48], renameat2 => [316, 276], statx => [332, 291], setns => [308, 268],
  unshare => [272, 97], prctl => [157, 167], capset => [126, 91], setgroups => [116, 159], setresgid => [119, 149],
  setresuid => [117, 147], mount => [165, 40], umount2 => [166, 39], pivot_root => [155, 41], chroot => [161, 51],
  fchdir => [81, 50], getrandom => [318, 278], close_range => [436, 436], pidfd_open => [434, 434], prlimit64 => [302, 261],
  open_tree => [428, 428], move_mount => [429, 429], mount_setattr => [442, 442],
);
# What it never needs once it has entered; each is refused with EPERM.
my %DENIED = (
  clone => [56, 220], clone3 => [435, 435], fork => [57, undef], vfork => [58, undef], execve => [59, 221],
  execveat => [322, 281], ptrace => [101, 117], kill => [62, 129], tkill => [200, 130], tgkill => [234, 131],
  process_vm_readv => [310, 270], process_vm_writev => [311, 271], socket => [41, 198], socketpair => [53, 199],
  setns => [308, 268], unshare => [272, 97], mount => [165, 40], umount2 => [166, 39], pivot_root => [155, 41],
  chroot => [161, 51], open_tree => [428, 428], move_mount => [429, 429], fsopen => [430, 430],
  mount_setattr => [442, 442], open_by_handle_at => [304, 265], bpf => [321, 280], io_uring_setup => [425, 425],
  userfaultfd => [323, 282], perf_event_open => [298, 241], add_key => [248, 217], request_key => [249, 218],
  keyctl => [250, 219], pidfd_open => [434, 434], pidfd_getfd => [438, 438],
);
my $ARCH = $Config{archname} =~ /^x86_64/ ? 0 : $Config{archname} =~ /^aarch64/ ? 1 : die "no such processor\n";
my %CALL = map { $_ => $NUMBERS{$_}[$ARCH] } keys %NUMBERS;

# Errors of the machine's files, as words that the node knows.
my %WORDS = (
  Errno::ENOENT, 'not_found', Errno::ENOTDIR, 'not_a_directory', Errno::EISDIR, 'is_a_directory',
  Errno::EACCES, 'forbidden', Errno::EPERM, 'forbidden', Errno::EROFS, 'read_only', Errno::ENOSPC, 'no_space',
  Errno::EDQUOT, 'no_space', Errno::ENAMETOOLONG, 'name_too_long', Errno::ELOOP, 'loop', Errno::EEXIST, 'changed',
  Errno::ENOTEMPTY, 'changed', Errno::EXDEV, 'changed', Errno::ESTALE, 'changed', Errno::EAGAIN, 'busy',
  Errno::EBUSY, 'busy', Errno::ETXTBSY, 'busy', Errno::EFBIG, 'too_large', Errno::ENXIO, 'not_a_file',
  Errno::EMLINK, 'no_space', Errno::EINVAL, 'invalid',
);
# File systems whose files are not stored anywhere: proc, sysfs, cgroup, cgroup2, devpts, mqueue, debugfs, tracefs,
# securityfs, bpf. Their sizes say nothing, and reading them may wait for ever.
my %VIRTUAL = map { $_ => 1 } (
  0x9fa0, 0x62656572, 0x27e0eb, 0x63677270, 0x1cd1, 0x19800202, 0x64626720, 0x74726163, 0x73636673, 0xcafe4a11,
);

# tmpfs, ramfs: what this process wrote there would count against the memory of the node, not of the machine.
my %MEMORY = (0x01021994 => 1, 0x858458f6 => 1);

# A descriptor that is closed when nobody has it any more.
package Fd {
  sub new { my ($class, $number) = @_; return bless \$number, $class }
  sub DESTROY { syscall($CALL{close}, ${ $_[0] }) }
}

my $machine;    # pidfd of the machine's first process, of a live one
my $unfinished;    # the put that is under way

# ---- system calls -------------------------------------------------------------------------------------------------

# `syscall` takes no literals, and passes a string that was once used as a number as a number: names are always given to
# it as fresh strings, and where there are literals, by way of this. (Not where a buffer is filled: it has a copy.)
sub call {
  my ($name, @arguments) = @_;
  return syscall($CALL{$name}, @arguments);
}

sub must {
  my ($name, @arguments) = @_;
  my $result = syscall($CALL{$name}, @arguments);
  die "$name: $!\n" if $result < 0;
  return $result;
}

sub number_of { my ($dir) = @_; return defined $dir ? $$dir + 0 : AT_FDCWD }

# Undef where it can't be opened. Magic links of /proc are never followed.
sub open_at {
  my ($dir, $path, $flags, $mode) = @_;
  my $how = pack('Q3', $flags | O_CLOEXEC, $mode // 0, RESOLVE_NO_MAGICLINKS);
  my $fd = syscall($CALL{openat2}, number_of($dir), "$path\0", $how, length $how);
  return $fd < 0 ? undef : Fd->new($fd);
}

# What statx(2) says of a name in a folder, or of the descriptor itself where the name is empty.
sub stat_at {
  my ($dir, $name, $flags) = @_;
  my $buffer = "\0" x 256;
  $flags |= AT_EMPTY_PATH if $name eq '';
  return undef if syscall($CALL{statx}, number_of($dir), "$name\0", $flags, 0x7ff, $buffer) < 0;
  my ($mode, $ino, $size, $csec, $cnsec, $msec, $mnsec, $major, $minor) =
    unpack 'x28 S x2 Q Q x48 q L x4 q L x12 L L', $buffer;
  return {
    mode => $mode, ino => $ino, size => $size, msec => $msec, mnsec => $mnsec, dev => "$major:$minor",
    etag => sprintf('"%x-%x-%x.%x-%x.%x"', $ino, $size, $msec, $mnsec, $csec, $cnsec),
  };
}

sub is_dir { return ($_[0]{mode} & S_IFMT) == S_IFDIR }
sub is_file { return ($_[0]{mode} & S_IFMT) == S_IFREG }
sub is_link { return ($_[0]{mode} & S_IFMT) == S_IFLNK }

sub kind_of_system {
  my ($fd) = @_;
  my $buffer = "\0" x 256;
  failed() if syscall($CALL{fstatfs}, number_of($fd), $buffer) < 0;
  return unpack('q', $buffer) & 0xffffffff;
}

sub is_virtual { my ($fd) = @_; return exists $VIRTUAL{ kind_of_system($fd) } }
sub is_memory { my ($fd) = @_; return exists $MEMORY{ kind_of_system($fd) } }

# ---- refusals -----------------------------------------------------------------------------------------------------

sub refuse { my ($word, $text) = @_; die { word => $word, text => $text // '' } }

# Refuses with what the last system call said.
sub failed {
  my ($errno, $text) = ($! + 0, "$!");
  refuse($WORDS{$errno} // 'failed', $text);
}

# ---- frames -------------------------------------------------------------------------------------------------------

sub read_exactly {
  my ($length) = @_;
  my $bytes = '';
  while (length $bytes < $length) {
    my $got = sysread STDIN, $bytes, $length - length $bytes, length $bytes;
    next if !defined $got && $!{EINTR};
    exit 0 if !$got;
  }
  return $bytes;
}

# The head of the next frame: letter and length. Ends the process when the node has gone, or the machine.
sub next_head {
  my $waiting = '';
  vec($waiting, 0, 1) = 1;
  vec($waiting, $$machine, 1) = 1 if defined $machine;
  while (1) {
    my $ready = $waiting;
    next if select($ready, undef, undef, undef) < 0;
    exit 0 if has_ended($ready);
    return unpack 'a N', read_exactly(5);
  }
}

sub has_ended { my ($ready) = @_; return defined $machine && vec($ready, $$machine, 1) }

sub machine_is_gone {
  return 0 if !defined $machine;
  my $ready = '';
  vec($ready, $$machine, 1) = 1;
  return select($ready, undef, undef, 0) > 0;
}

sub write_all {
  my ($bytes) = @_;
  my $done = 0;
  while ($done < length $bytes) {
    my $written = syswrite STDOUT, $bytes, length($bytes) - $done, $done;
    next if !defined $written && $!{EINTR};
    exit 0 if !defined $written;
    $done += $written;
  }
}

sub answer {
  my ($letter, @fields) = @_;
  my $payload = join '', map { pack('N', length $_) . $_ } @fields;
  write_all(pack('a N', $letter, length $payload) . $payload);
}

sub fields_of {
  my ($payload) = @_;
  return unpack '(N/a)*', $payload;
}

sub entry_of {
  my ($stat) = @_;
  my $size = is_dir($stat) ? 0 : $stat->{size};
  return (is_dir($stat) ? 'd' : 'f', "$size", $stat->{mode} & 07777, $stat->{msec}, $stat->{mnsec}, $stat->{etag});
}

# ---- paths --------------------------------------------------------------------------------------------------------

sub parts_of { my ($path) = @_; return grep { $_ ne '' && $_ ne '.' } split m{/}, $path }

# Opens as much of a folder's path as there is: its descriptor, and the parts that are missing.
sub open_folder {
  my ($base, $path, @parts) = @_;
  my $root = $path =~ m{^/} ? '/' : './';
  my @missing;
  while (1) {
    my $dir = open_at($base, $root . join('/', @parts), O_PATH | O_DIRECTORY);
    return ($dir, @missing) if defined $dir;
    failed() if !$!{ENOENT} || !@parts;
    # Of what is not there, `..` leads nowhere.
    refuse('not_found') if $parts[-1] eq '..';
    unshift @missing, pop @parts;
  }
}

# Where a name is: the folder that has it and the name in there, and what is missing of the folder. Links at the end
# of the path are followed where `$follow` says so, also those that lead to nothing yet.
sub locate {
  my ($path, $follow) = @_;
  my $base;
  for (1 .. MAX_LINKS) {
    my @parts = parts_of($path);
    my $name = pop @parts;
    refuse('is_a_directory') if !defined $name || $name eq '..';
    my ($dir, @missing) = open_folder($base, $path, @parts);
    return ($dir, $name, @missing) if @missing || !$follow;
    my $target = "\0" x 4096;
    my $length = syscall($CALL{readlinkat}, number_of($dir), "$name\0", $target, 4096);
    return ($dir, $name) if $length < 0;
    # What a magic link of /proc says is no path.
    refuse('not_a_file', 'it is on a file system of the kernel') if is_virtual($dir);
    ($base, $path) = ($dir, substr $target, 0, $length);
  }
  refuse('loop');
}

sub check_etag {
  my ($stat, $if_match) = @_;
  return if $if_match eq '';
  refuse('precondition', 'there is no such file') if !defined $stat;
  return if $if_match eq '*';
  refuse('precondition', 'it is another by now') if !grep { $_ eq $stat->{etag} } split / /, $if_match;
}

# ---- stat, list, get ----------------------------------------------------------------------------------------------

sub do_stat {
  my ($path) = @_;
  my $fd = open_at(undef, $path, O_PATH) // failed();
  answer('O', entry_of(stat_at($fd, '', 0) // failed()));
}

# Calls back with each name of a folder, `.` and `..` left out, and whether the folder says that it is one itself.
sub each_name {
  my ($fd, $visit) = @_;
  my $buffer = "\0" x 65_536;
  while (1) {
    my $length = syscall($CALL{getdents64}, number_of($fd), $buffer, 65_536);
    failed() if $length < 0;
    return if $length == 0;
    for (my $at = 0; $at < $length;) {
      my ($size, $type, $name) = unpack "x$at x16 S C Z*", $buffer;
      $at += $size;
      $visit->($name, $type == 4) if $name ne '.' && $name ne '..';
    }
  }
}

# The lowest names of a folder above `$after`: at most as many as are asked for, and whether there are more.
sub lowest_names {
  my ($fd, $after, $limit) = @_;
  my ($scanned, $more, @names) = (0, 0);
  my $cut = sub {
    @names = sort @names;
    ($more, $#names) = (1, $limit - 1) if @names > $limit;
  };
  each_name($fd, sub {
    my ($name) = @_;
    refuse('too_many', MAX_SCANNED) if ++$scanned > MAX_SCANNED;
    return if $name le $after;
    push @names, $name;
    $cut->() if @names > 2 * $limit;
  });
  $cut->();
  return ($more, @names);
}

# What a name leads to; a link that leads nowhere is shown itself, and so are those of /proc.
sub stat_entry {
  my ($dir, $name) = @_;
  my $stat = stat_at($dir, $name, AT_SYMLINK_NOFOLLOW);
  return $stat if !defined $stat || !is_link($stat);
  my $target = open_at($dir, $name, O_PATH);
  return (defined $target ? stat_at($target, '', 0) : undef) // $stat;
}

sub do_list {
  my ($path, $after, $limit, $max_bytes) = @_;
  my $there = open_at(undef, $path, O_PATH) // failed();
  refuse('not_a_directory') if !is_dir(stat_at($there, '', 0) // failed());
  my $fd = open_at($there, '.', O_DIRECTORY | O_NONBLOCK) // failed();
  my ($more, @names) = lowest_names($fd, $after, $limit + 0);
  my @fields;
  for my $name (@names) {
    my $stat = stat_entry($fd, $name);
    # Gone since; or it may be named, but not looked at.
    next if !defined $stat && $!{ENOENT};
    $stat //= { mode => 0, size => 0, msec => 0, mnsec => 0, etag => '' };
    $max_bytes -= length($name) + length($path) + 100;
    if ($max_bytes < 0) { $more = 1; last }
    push @fields, $name, entry_of($stat);
  }
  answer('O', $more, @fields);
}

# Opens a file for reading, and nothing else: what opening would wake or start is looked at first, and again after.
sub open_file {
  my ($path) = @_;
  my $there = open_at(undef, $path, O_PATH) // failed();
  my $look = sub {
    my ($fd) = @_;
    my $stat = stat_at($fd, '', 0) // failed();
    refuse('is_a_directory') if is_dir($stat);
    refuse('not_a_file', 'it is no regular file') if !is_file($stat);
    refuse('not_a_file', 'it is on a file system of the kernel') if is_virtual($fd);
    return $stat;
  };
  $look->($there);
  my $fd = open_at(undef, $path, O_NONBLOCK | O_NOCTTY) // failed();
  return ($fd, $look->($fd));
}

# `$start` below 0 means the last so many bytes; `$end` is inclusive; either may be empty.
sub range_of {
  my ($size, $start, $end) = @_;
  return (0, $size) if $start eq '' && $end eq '';
  $start = $start eq '' ? 0 : $start + 0;
  my $from = $start < 0 ? ($size + $start < 0 ? 0 : $size + $start) : $start;
  my $to = $end eq '' || $end >= $size ? $size : $end + 1;
  refuse('range', $size) if $from >= $to;
  return ($from, $to);
}

sub do_get {
  my ($path, $start, $end) = @_;
  my ($fd, $stat) = open_file($path);
  my ($from, $to) = range_of($stat->{size}, $start, $end);
  failed() if syscall($CALL{lseek}, number_of($fd), $from, 0) < 0;
  answer('O', entry_of($stat), $from, $to);
  my $missing = $to - $from;
  while ($missing > 0) {
    my $sent = syscall($CALL{sendfile}, 1, number_of($fd), 0, $missing < PIECE_BYTES ? $missing : PIECE_BYTES);
    next if $sent < 0 && $!{EINTR};
    # It has become shorter, or can't be read: the reader is owed bytes that there are not, and sees the end instead.
    exit 1 if $sent <= 0;
    $missing -= $sent;
  }
}

# ---- put ----------------------------------------------------------------------------------------------------------

# Looks at what is to be replaced. Its mode, if there is anything.
sub check_replaced {
  my ($put) = @_;
  my ($dir, $name) = @$put{qw(dir name)};
  my $stat = @{ $put->{missing} } ? undef : stat_at($dir, $name, AT_SYMLINK_NOFOLLOW);
  failed() if !defined $stat && !@{ $put->{missing} } && !$!{ENOENT};
  check_etag($stat, $put->{if_match});
  return undef if !defined $stat;
  refuse('precondition', 'it is there already') if $put->{if_none};
  refuse('is_a_directory') if is_dir($stat);
  refuse('not_a_file', 'it is no regular file') if !is_file($stat);
  # One that a command could not write either is not replaced by one that it could.
  failed() if syscall($CALL{faccessat}, number_of($dir), "$name\0", 2) < 0;
  return $stat->{mode} & 0777;
}

sub random_name {
  my $bytes = "\0" x 12;
  failed() if syscall($CALL{getrandom}, $bytes, 12, 0) < 0;
  return '.put-' . unpack 'H*', $bytes;
}

sub name_file {
  my ($fd, $dir, $name) = @_;
  return call('linkat', number_of($fd), "\0", number_of($dir), "$name\0", AT_EMPTY_PATH) == 0;
}

# Without /proc, only newer kernels give a name to a file without one; and not all file systems have such files. Asked of
# one that is thrown away: a file whose only name was removed gets no other.
sub takes_names {
  my ($dir, $name) = @_;
  my $fd = open_at($dir, '.', O_TMPFILE | O_WRONLY, 0600) // return 0;
  return name_file($fd, $dir, $name) && syscall($CALL{unlinkat}, number_of($dir), "$name\0", 0) == 0;
}

# A file without a name where that is possible, so that nothing is left of it however this process ends; else one whose
# name begins with a dot.
sub open_temporary {
  my ($put) = @_;
  my ($dir, $name) = @$put{qw(dir temporary)};
  $put->{fd} = open_at($dir, '.', O_TMPFILE | O_WRONLY, 0600) if takes_names($dir, $name);
  return if defined $put->{fd};
  $put->{fd} = open_at($dir, $name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW, 0600) // failed();
  $put->{named} = $dir;
}

sub discard {
  my ($put) = @_;
  syscall($CALL{unlinkat}, number_of($put->{named}), "$put->{temporary}\0", 0) if defined $put->{named};
  delete @$put{qw(named fd)};
}

# However this process ends by itself.
END { discard($unfinished) if defined $unfinished }

sub begin_put {
  my ($put, $path, $mode, $if_match, $if_none, $size, $max, $durable) = @_;
  my ($dir, $name, @missing) = locate($path, 1);
  refuse('not_a_file', 'it is on a file system of the kernel') if is_virtual($dir);
  refuse('in_memory') if is_memory($dir);
  %$put = (
    dir => $dir, name => $name, missing => \@missing, mode => $mode, if_match => $if_match, if_none => $if_none,
    max => $max, durable => $durable, written => 0, temporary => random_name(),
  );
  refuse('name_too_long') if grep { length > 255 } $name, @missing;
  check_replaced($put);
  open_temporary($put);
  return if $size eq '';
  refuse('too_large') if $size > $max;
  # So that a disk that is too small says so before the bytes are sent; where that can't be asked, writing tells.
  my $kept = syscall($CALL{fallocate}, number_of($put->{fd}), 1, 0, $size + 0) if $size > 0;
  failed() if defined $kept && $kept < 0 && ($!{ENOSPC} || $!{EDQUOT});
}

sub write_piece {
  my ($put, $bytes) = @_;
  $put->{written} += length $bytes;
  refuse('too_large') if $put->{written} > $put->{max};
  while (length $bytes) {
    my $written = syscall($CALL{write}, number_of($put->{fd}), $bytes, length $bytes);
    next if $written < 0 && $!{EINTR};
    failed() if $written < 0;
    $bytes = $written == length $bytes ? '' : substr $bytes, $written;
  }
}

sub sync_file {
  my ($put) = @_;
  failed() if $put->{durable} && syscall($CALL{fsync}, number_of($put->{fd})) < 0;
}

# A folder that may not be read can't be synced by itself.
sub sync_folder {
  my ($put, $dir) = @_;
  return if !$put->{durable};
  my $fd = open_at($dir, '.', O_DIRECTORY);
  my $done = defined $fd ? syscall($CALL{fsync}, number_of($fd)) : syscall($CALL{syncfs}, number_of($put->{fd}));
  failed() if $done < 0;
}

# Makes the folders that were missing; some may be there by now.
sub make_folders {
  my ($put) = @_;
  while (defined(my $part = shift @{ $put->{missing} })) {
    my $dir = $put->{dir};
    failed() if syscall($CALL{mkdirat}, number_of($dir), "$part\0", 0755) < 0 && !$!{EEXIST};
    $put->{dir} = open_at($dir, $part, O_PATH | O_DIRECTORY) // refuse('changed', "$!");
    sync_folder($put, $dir);
  }
}

sub commit {
  my ($put) = @_;
  refuse('gone') if machine_is_gone();
  make_folders($put);
  my $kept = check_replaced($put);
  my ($dir, $fd, $temporary) = @$put{qw(dir fd temporary)};
  my $mode = $put->{mode} eq '' ? $kept // 0644 : $put->{mode} + 0;
  failed() if syscall($CALL{fchmod}, number_of($fd), $mode) < 0;
  sync_file($put);
  my $from = $put->{named};
  if (!defined $from) {
    name_file($fd, $dir, $temporary) or failed();
    $from = $put->{named} = $dir;
  }
  my $flags = defined $kept ? 0 : RENAME_NOREPLACE;
  my ($old, $new) = ("$temporary\0", "$put->{name}\0");
  failed() if syscall($CALL{renameat2}, number_of($from), $old, number_of($dir), $new, $flags) < 0;
  delete $put->{named};
  my $stat = stat_at($fd, '', 0) // failed();
  my $there = stat_at($dir, $put->{name}, AT_SYMLINK_NOFOLLOW);
  my $same = defined $there && $there->{ino} == $stat->{ino} && $there->{dev} eq $stat->{dev};
  refuse('changed', 'something in the sandbox replaced it meanwhile') if !$same;
  sync_folder($put, $dir);
  answer('O', entry_of($stat), defined $kept ? 0 : 1);
}

# Takes the frames of a put until it is done, given up or refused.
sub do_put {
  my $put = { };
  my $refused = attempt(sub { begin_put($put, @_); answer('O') }, @_);
  # Nothing is sent along then.
  return discard($put) if $refused;
  $unfinished = $put;
  while (1) {
    my ($letter, $length) = next_head();
    if ($letter eq 'D') {
      exit 1 if $length > PIECE_BYTES;
      my $bytes = read_exactly($length);
      next if $refused;
      $refused = attempt(\&write_piece, $put, $bytes);
      discard($put) if $refused;
      next;
    }
    return if $refused;
    my $failed = attempt(sub {
      return sync_file($put), answer('O') if $letter eq 'F';
      return commit($put) if $letter eq 'C';
      refuse('given_up');
    });
    next if !$failed && $letter eq 'F';
    return discard($put);
  }
}

# ---- delete -------------------------------------------------------------------------------------------------------

sub do_delete {
  my ($path, $recursive, $if_match, $durable) = @_;
  my ($dir, $name, @missing) = locate($path, 0);
  refuse('not_found') if @missing;
  my $stat = stat_at($dir, $name, AT_SYMLINK_NOFOLLOW) // failed();
  check_etag($stat, $if_match);
  refuse('gone') if machine_is_gone();
  if (!is_dir($stat)) { failed() if syscall($CALL{unlinkat}, number_of($dir), "$name\0", 0) < 0 }
  elsif ($recursive) { remove_tree($dir, $name) }
  else { refuse('is_a_directory') }
  if ($durable) {
    my $fd = open_at($dir, '.', O_DIRECTORY);
    failed() if defined $fd && syscall($CALL{fsync}, number_of($fd)) < 0;
  }
  answer('O');
}

sub open_level {
  my ($dir, $name) = @_;
  my $fd = open_at($dir, $name, O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK) // return undef;
  return { dir => $dir, name => $name, fd => $fd, names => [], removed => 0 };
}

# Never follows a link. Whatever lies too deep is moved to the top of the tree first, so that few folders are open.
sub remove_tree {
  my ($dir, $name) = @_;
  my $until = time + MAX_REMOVE_SECS;
  my @levels = (open_level($dir, $name) // failed());
  while (@levels) {
    refuse('busy', 'it is being filled faster than it is emptied') if time > $until || machine_is_gone();
    my $level = $levels[-1];
    if (@{ $level->{names} }) {
      my $below = remove_name(\@levels, shift @{ $level->{names} });
      push @levels, $below if defined $below;
      next;
    }
    next if refill($level);
    if (syscall($CALL{unlinkat}, number_of($level->{dir}), "$level->{name}\0", AT_REMOVEDIR) >= 0 || $!{ENOENT}) {
      pop @levels;
      next;
    }
    failed() if !$!{ENOTEMPTY};
    # Something was made in it meanwhile.
    syscall($CALL{lseek}, number_of($level->{fd}), 0, 0);
  }
}

# Whether there was anything more to read.
sub refill {
  my ($level) = @_;
  my $buffer = "\0" x 32_768;
  my $length = syscall($CALL{getdents64}, number_of($level->{fd}), $buffer, 32_768);
  failed() if $length < 0 && !$!{ENOENT};
  for (my $at = 0; $at < $length;) {
    my ($size, $name) = unpack "x$at x16 S x Z*", $buffer;
    $at += $size;
    push @{ $level->{names} }, $name if $name ne '.' && $name ne '..';
  }
  return $length > 0;
}

# Removes it, or gives the level below when it is a folder.
sub remove_name {
  my ($levels, $name) = @_;
  my $level = $levels->[-1];
  return undef if syscall($CALL{unlinkat}, number_of($level->{fd}), "$name\0", 0) >= 0 || $!{ENOENT};
  failed() if !$!{EISDIR} && !$!{EPERM};
  if (@$levels >= MAX_DEPTH) {
    my ($top, $new) = ($levels->[0]{fd}, random_name());
    failed() if syscall($CALL{renameat2}, number_of($level->{fd}), "$name\0", number_of($top), "$new\0", 0) < 0;
    push @{ $levels->[0]{names} }, $new;
    return undef;
  }
  my $below = open_level($level->{fd}, $name);
  refuse('forbidden', 'it may not be removed') if !defined $below && $!{ENOTDIR};
  failed() if !defined $below && !$!{ENOENT};
  return $below;
}

# ---- entering -----------------------------------------------------------------------------------------------------

sub open_host {
  my ($dir, $path, $flags) = @_;
  my $fd = syscall($CALL{openat}, number_of($dir), "$path\0", $flags | O_CLOEXEC, 0);
  die "$path: $!\n" if $fd < 0;
  return Fd->new($fd);
}

sub same_file {
  my ($one, $other) = map { stat_at($_, '', 0) // die "stat: $!\n" } @_;
  return $one->{ino} == $other->{ino} && $one->{dev} eq $other->{dev};
}

sub enter_live {
  my ($pid) = @_;
  $pid =~ /^[1-9][0-9]*$/ or die "no pid\n";
  $machine = Fd->new(must('pidfd_open', $pid + 0, 0));
  my $proc = open_host(undef, "/proc/$pid", O_PATH | O_DIRECTORY);
  my ($user, $mounts) = map { open_host($proc, "ns/$_", 0) } qw(user mnt);
  my $root = open_host($proc, 'root', O_PATH | O_DIRECTORY);
  # Its number may have passed on to another before it was opened, but not after.
  die "the machine has ended\n" if machine_is_gone();
  my @own = map { open_host(undef, "/proc/self/ns/$_", 0) } qw(user mnt);
  die "that process is no machine\n" if same_file($user, $own[0]) || same_file($mounts, $own[1]);
  must('setgroups', 0, 0);
  must('setns', number_of($mounts), CLONE_NEWNS);
  must('fchdir', number_of($root));
  must('chroot', ".\0");
  must('setns', number_of($user), CLONE_NEWUSER);
}

# Writes the maps of ids for this process: it can't itself, once it is in the new namespace.
sub start_mapper {
  my ($first) = @_;
  my $pid = $$;
  pipe my $asked, my $ask or die "pipe: $!\n";
  my $child = fork // die "fork: $!\n";
  if ($child == 0) {
    close $ask;
    sysread $asked, my $word, 1 or exit 1;
    for my $kind (qw(uid gid)) {
      open my $map, '>', "/proc/$pid/${kind}_map" or exit 1;
      syswrite $map, "0 $first 65536\n" or exit 1;
    }
    exit 0;
  }
  close $asked;
  return sub {
    syswrite $ask, '!';
    waitpid $child, 0;
    die "the ids can't be mapped\n" if $? != 0;
  };
}

# A copy of the mount, which is nowhere yet.
sub take_volume {
  my ($is_read_only, $from) = @_;
  my $flags = OPEN_TREE_CLONE | AT_RECURSIVE | O_CLOEXEC;
  my $tree = Fd->new(must('open_tree', AT_FDCWD, "$from\0", $flags));
  my $set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | ($is_read_only ? MOUNT_ATTR_RDONLY : 0);
  my $attributes = pack 'Q4', $set, 0, 0, 0;
  must('mount_setattr', $$tree, "\0", AT_EMPTY_PATH | AT_RECURSIVE, $attributes, length $attributes);
  return $tree;
}

sub enter_mounted {
  my ($pid, $volumes, $root, $first, @covered) = @_;
  $first =~ /^[1-9][0-9]*$/ or die "no id\n";
  $machine = Fd->new(must('pidfd_open', $pid + 0, 0)) if defined $pid;
  my @trees = map { [take_volume(@$_[0, 1]), $_->[2]] } @$volumes;
  my $map_ids = start_mapper($first + 0);
  must('setgroups', 0, 0);
  must('unshare', CLONE_NEWNS);
  must('mount', "none\0", "/\0", 0, MS_REC | MS_PRIVATE, 0);
  must('mount', "$root\0", "$root\0", 0, MS_BIND | MS_REC, 0);
  chdir $root or die "$root: $!\n";
  must('pivot_root', ".\0", ".\0");
  must('umount2', ".\0", MNT_DETACH);
  chdir '/' or die "chdir: $!\n";
  must('mount', "none\0", "/\0", 0, MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV, 0);
  my $flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
  for my $path (@covered) {
    my $done = call('mount', "none\0", "$path\0", "tmpfs\0", $flags, "size=4k,mode=755\0");
    die "mount: $!\n" if $done < 0 && !$!{ENOENT} && !$!{ENOTDIR};
  }
  # The machine's links lead nowhere else from here on.
  for my $row (@trees) {
    my ($tree, $at) = @$row;
    must('move_mount', $$tree, "\0", AT_FDCWD, "$at\0", MOVE_MOUNT_F_EMPTY_PATH);
  }
  must('unshare', CLONE_NEWUSER);
  $map_ids->();
}

sub become_agent {
  for my $capability (0 .. 63) { call('prctl', 24, $capability, 0, 0, 0) }
  must('setresgid', AGENT_ID, AGENT_ID, AGENT_ID);
  must('setresuid', AGENT_ID, AGENT_ID, AGENT_ID);
  # The host's root is not the namespace's: changing from it takes no capability away.
  must('capset', pack('L L', 0x20080522, 0), "\0" x 24);
  must('prctl', 38, 1, 0, 0, 0);
  must('prctl', 4, 0, 0, 0, 0);
}

sub limit_itself {
  must('prlimit64', 0, 9, pack('Q2', MAX_ADDRESS_BYTES, MAX_ADDRESS_BYTES), 0);
  must('prlimit64', 0, 7, pack('Q2', MAX_OPEN_FILES, MAX_OPEN_FILES), 0);
  must('prlimit64', 0, 4, pack('Q2', 0, 0), 0);
  umask 0;
  $SIG{PIPE} = 'IGNORE';
  $SIG{TERM} = sub { exit 0 };
}

sub filter_calls {
  my @numbers = sort { $a <=> $b } grep { defined } map { $_->[$ARCH] } values %DENIED;
  my $op = sub { pack 'S C C L', @_ };
  my $arch = (0xc000003e, 0xc00000b7)[$ARCH];
  my ($allow, $deny, $kill) = ($op->(6, 0, 0, 0x7fff0000), $op->(6, 0, 0, 0x50000 | Errno::EPERM), $op->(6, 0, 0, 0));
  my $program = $op->(0x20, 0, 0, 4) . $op->(0x15, 1, 0, $arch) . $kill . $op->(0x20, 0, 0, 0);
  # x32 calls go by other numbers.
  $program .= $op->(0x35, scalar @numbers + 1, 0, 0x40000000);
  my $left = @numbers;
  $program .= $op->(0x15, $left--, 0, $_) for @numbers;
  $program .= $allow . $deny;
  must('prctl', 22, 2, pack('S x6 P', length($program) / 8, $program), 0, 0);
}

# ---- the loop -----------------------------------------------------------------------------------------------------

# Does it, and says so when it is refused; then the answer is true.
sub attempt {
  my ($task, @arguments) = @_;
  return 0 if eval { $task->(@arguments); 1 };
  my $problem = $@;
  die $problem if ref $problem ne 'HASH';
  answer('E', @$problem{qw(word text)});
  return 1;
}

my %OPERATIONS = (stat => \&do_stat, list => \&do_list, get => \&do_get, delete => \&do_delete);

sub serve {
  while (1) {
    my ($letter, $length) = next_head();
    exit 1 if $letter ne 'Q' || $length > MAX_REQUEST_BYTES;
    my ($operation, @arguments) = fields_of(read_exactly($length));
    if ($operation eq 'put') { do_put(@arguments); undef $unfinished }
    else { attempt($OPERATIONS{$operation} // die("no operation\n"), @arguments) }
  }
}

# From here on it is limited, whatever a hostile machine makes of its work.
sub join_groups {
  for my $file (@_) {
    open my $group, '+<', $file or die "no group to be in: $!\n";
    syswrite($group, '0') or die "no group to be in: $!\n";
    close $group;
  }
}

sub main {
  my @groups;
  my ($pid, @volumes);
  while (@ARGV > 1) {
    if ($ARGV[0] eq 'join') { push @groups, (splice @ARGV, 0, 2)[1] }
    elsif ($ARGV[0] eq 'machine') { $pid = (splice @ARGV, 0, 2)[1] }
    elsif ($ARGV[0] =~ /^(read-only-)?volume$/) { push @volumes, [defined $1, (splice @ARGV, 0, 3)[1, 2]] }
    else { last }
  }
  my ($kind, @arguments) = @ARGV;
  binmode STDIN;
  binmode STDOUT;
  must('close_range', 3, 0x7fffffff, 0);
  my $entered = eval {
    join_groups(@groups);
    $kind eq 'live' ? enter_live(@arguments) : enter_mounted($pid, \@volumes, @arguments);
    become_agent();
    limit_itself();
    # What were loaded from here on would be the machine's.
    @INC = ();
    filter_calls();
    1;
  };
  if (!$entered) {
    answer('E', 'not_entered', $@);
    exit 1;
  }
  answer('O');
  serve();
}

main();
