#!/usr/bin/perl
# Mounts for sandboxes: mounts.pl ARCHITECTURE PARENT OPERATION ARGUMENT... [-- OPERATION ARGUMENT...]...
# ARCHITECTURE is x64 or arm64. PARENT is the process that starts it: it dies with that, so that whoever comes after can
# take apart what there is, and nothing is added behind his back.
#
# One process does all the operations of a call in their order, because starting a program for each (mount, losetup,
# cp, umount) costs more than what it does, and because some have no program yet (mounts with mapped ids). When one
# fails, what this call has mounted is unmounted, the system's word for it (ENOSPC) and a sentence go to standard
# error, and the exit code is 1. Needs nothing but perl-base; Linux; root. Modules such as POSIX take
# longer to load than all of it takes to run: it has none but Errno.
#
#   private FOLDER                        the folder becomes a mount of its own whose mounts no other namespace sees,
#                                         where it lies on a shared one
#   copy FROM TO                          a copy with the holes of the original; TO must not be there
#   folder PATH HOST_ID                   made where it is not there, with that owner and group
#   disk FILE AT                          the ext4 file system in the file; nothing happens when something is mounted
#                                         there
#   root IMAGE FIRST COUNT UPPER WORK AT OPTIONS USR
#                                         an overlay of the image, in which host id 0 is FIRST, and so on. OPTIONS: more
#                                         of them, by commas, or nothing. USR: a folder of the host that is shown,
#                                         read-only, as its `usr`, or nothing
#   mapped FROM AT FIRST COUNT MODE       a bind mount in which host id 0 is FIRST, and so on; MODE: ro or rw;
#                                         nothing happens when something is mounted there
#   unmount AT                            with what is mounted below it; nothing happens when nothing is
#   free FILE_OR_FOLDER                   lets go of loop devices whose file is this, or below it
use strict;
use warnings;

my %NUMBERS = (
    x64   => { mount => 165, umount2 => 166, unshare => 272, exit_group => 231, prctl => 157 },
    arm64 => { mount => 40,  umount2 => 39,  unshare => 97,  exit_group => 94,  prctl => 167 },
);
# These have the same number everywhere.
my %NEW = (open_tree => 428, move_mount => 429, mount_setattr => 442);

my ($architecture, $parent) = splice @ARGV, 0, 2;
my $numbers = $NUMBERS{$architecture} or fail("ENOSYS", "no system call numbers are known for $architecture");

use constant {
    MS_RDONLY  => 1,
    MS_NOSUID  => 2,
    MS_NODEV   => 4,
    MS_NOATIME => 1024,
    MS_BIND    => 4096,
    MS_PRIVATE => 1 << 18,

    MNT_DETACH => 2,

    PR_SET_PDEATHSIG => 1,
    SIGKILL          => 9,

    AT_FDCWD                => -100,
    AT_EMPTY_PATH           => 0x1000,
    OPEN_TREE_CLONE         => 1,
    MOVE_MOUNT_F_EMPTY_PATH => 4,
    MOUNT_ATTR_RDONLY       => 1,
    MOUNT_ATTR_NOSUID       => 2,
    MOUNT_ATTR_NODEV        => 4,
    MOUNT_ATTR_IDMAP        => 0x100000,
    CLONE_NEWUSER           => 0x10000000,

    LOOP_CLR_FD        => 0x4C01,
    LOOP_CONFIGURE     => 0x4C0A,
    LOOP_CTL_GET_FREE  => 0x4C82,
    LO_FLAGS_AUTOCLEAR => 4,

    O_RDONLY  => 0,
    O_WRONLY  => 1,
    O_RDWR    => 2,
    O_CREAT   => 0100,
    O_EXCL    => 0200,
    O_CLOEXEC => 02000000,
    LOCK_EX   => 2,
    SEEK_DATA => 3,
    SEEK_HOLE => 4,

    # Where the image is, in the folder of a machine, while its root is mounted.
    LOWER => "image",
};

syscall($numbers->{prctl}, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
getppid() == $parent or fail("ESRCH", "whoever started this has gone");

# What has been mounted, to be undone when a later operation fails.
my @mounted;
# Files that this call has made: nobody else has them, or has mounted them.
my %made;

my %OPERATIONS = (
    private => [1, \&make_private],
    copy    => [2, \&copy_sparse],
    folder  => [2, \&make_folder],
    disk    => [2, \&mount_disk],
    root    => [8, \&mount_root],
    mapped  => [5, \&mount_mapped],
    unmount => [1, \&unmount],
    free    => [1, \&free_loops],
);

# Namespaces for mapped ids, by their ids: a process for each makes it while the first operations are under way.
my %users;

my @operations = operations(@ARGV);
for my $words (@operations) {
    my ($name, @arguments) = @$words;
    begin_users(@arguments[1, 2]) if $name eq "root" && @arguments > 2;
    begin_users(@arguments[2, 3]) if $name eq "mapped" && @arguments > 3;
}
for my $words (@operations) {
    my ($name, @arguments) = @$words;
    my $operation = $OPERATIONS{$name} or fail("EINVAL", "there is no operation $name");
    my ($count, $do) = @$operation;
    @arguments == $count or fail("EINVAL", "$name takes $count arguments");
    $do->(@arguments);
}
end_users();
exit 0;

sub operations {
    my @operations = ([]);
    for my $word (@_) {
        if ($word eq "--") { push @operations, [] }
        else               { push @{ $operations[-1] }, $word }
    }
    return @operations;
}

# Ends the program after having undone its mounts. Of a system call that has failed, `$!` must be untouched.
sub fail {
    my ($code, $sentence) = @_;
    for my $at (reverse @mounted) { umount2($at, MNT_DETACH) }
    end_users();
    print STDERR "$code $sentence\n";
    exit 1;
}

sub fail_by_errno {
    my ($sentence) = @_;
    my $text = "$!";
    my ($code) = grep { $!{$_} } keys %!;
    fail($code // "EIO", "$sentence: $text");
}

# System calls. `syscall` wants strings that it may write to, and numbers that are numbers.

sub mount {
    my ($source, $at, $type, $flags, $data) = @_;
    return syscall($numbers->{mount}, $source, $at, $type, $flags + 0, $data) == 0;
}

sub umount2 {
    my ($at, $flags) = @_;
    return syscall($numbers->{umount2}, $at, $flags + 0) == 0;
}

# Mounts, as the kernel lists them: [id, root, where, whether shared, source].
sub mounts {
    open(my $file, "<", "/proc/self/mountinfo") or fail_by_errno("cannot read the mounts");
    my @mounts;
    while (my $line = <$file>) {
        my ($left, $right) = split / - /, $line, 2;
        my ($id, undef, undef, $root, $at, undef, @tags) = split / /, $left;
        my (undef, $source) = split / /, $right;
        s/\\([0-7]{3})/chr oct $1/ge for $root, $at;
        push @mounts, { id => $id, at => $at, is_shared => scalar(grep { /^shared:/ } @tags), source => $source };
    }
    return @mounts;
}

sub is_mounted {
    my ($at) = @_;
    return scalar grep { $_->{at} eq $at } mounts();
}

# Operations.

sub make_private {
    my ($folder) = @_;
    my $lock = lock_beside($folder);
    my $holder;
    for my $mount (mounts()) {
        my $at = $mount->{at};
        my $holds = $at eq "/" || $folder eq $at || index($folder, "$at/") == 0;
        $holder = $mount if $holds && (!$holder || length($at) >= length($holder->{at}));
    }
    return if !$holder || !$holder->{is_shared};
    if ($holder->{at} ne $folder) {
        mount($folder, $folder, "none", MS_BIND, "") or fail_by_errno("cannot bind $folder");
        push @mounted, $folder;
    }
    mount("none", $folder, "none", MS_PRIVATE, "") or fail_by_errno("cannot make the mount $folder private");
}

# Several processes may do the same: one after the other.
sub lock_beside {
    my ($path) = @_;
    (my $parent = $path) =~ s{/[^/]+/?$}{};
    sysopen(my $lock, $parent eq "" ? "/" : $parent, O_RDONLY) or fail_by_errno("cannot open $parent");
    flock($lock, LOCK_EX) or fail_by_errno("cannot lock $parent");
    return $lock;
}

sub copy_sparse {
    my ($from, $to) = @_;
    sysopen(my $in,  $from, O_RDONLY) or fail_by_errno("cannot open $from");
    sysopen(my $out, $to, O_WRONLY | O_CREAT | O_EXCL, 0600) or fail_by_errno("cannot make $to");
    $made{$to} = 1;
    my $size = -s $in;
    truncate($out, $size) or fail_by_errno("cannot size $to");
    my $end = 0;
    while (defined(my $start = seek_to($in, $end, SEEK_DATA))) {
        $end = seek_to($in, $start, SEEK_HOLE);
        copy_range($in, $out, $start, $end, $to);
    }
}

# Undefined when there is no more data.
sub seek_to {
    my ($file, $from, $whence) = @_;
    my $position = sysseek($file, $from, $whence);
    return $position + 0 if defined $position;
    return undef if $!{ENXIO};
    fail_by_errno("cannot seek");
}

sub copy_range {
    my ($in, $out, $start, $end, $to) = @_;
    sysseek($in,  $start, 0) // fail_by_errno("cannot seek");
    sysseek($out, $start, 0) // fail_by_errno("cannot seek");
    while ($start < $end) {
        my $left = $end - $start;
        my $read = sysread($in, my $bytes, $left < 1 << 20 ? $left : 1 << 20);
        defined $read or fail_by_errno("cannot read what is copied to $to");
        $read > 0     or fail("EIO", "what is copied to $to became shorter");
        for (my $written = 0; $written < $read;) {
            my $count = syswrite($out, $bytes, $read - $written, $written);
            defined $count or fail_by_errno("cannot write $to");
            $written += $count;
        }
        $start += $read;
    }
}

sub make_folder {
    my ($path, $id) = @_;
    mkdir($path, 0755) or $!{EEXIST} or fail_by_errno("cannot make $path");
    chown($id, $id, $path) or fail_by_errno("cannot give $path away");
}

sub mount_disk {
    my ($file, $at) = @_;
    my $lock = lock_beside($at);
    return if !$made{$file} && is_mounted($at);
    # The device lets go of the file by itself when it is unmounted, or when this process ends before that.
    my $loop = attach_loop($file);
    my $flags = MS_NOSUID | MS_NODEV | MS_NOATIME;
    # A file that is all holes needs no zeroes in its inode tables.
    mount($loop->{path}, $at, "ext4", $flags, "noinit_itable") or fail_by_errno("cannot mount $file");
    push @mounted, $at;
}

sub attach_loop {
    my ($path) = @_;
    # Two devices over one file would destroy what is on it: one that is still held by somebody is used again.
    for my $loop ($made{$path} ? () : loops()) {
        next if $loop->{backing} ne $path;
        sysopen(my $device, $loop->{path}, O_RDWR) or next;
        my $is_same = grep { $_->{path} eq $loop->{path} && $_->{backing} eq $path } loops();
        return { path => $loop->{path}, file => $device } if $is_same;
    }
    sysopen(my $file, $path, O_RDWR) or fail_by_errno("cannot open $path");
    sysopen(my $control, "/dev/loop-control", O_RDWR) or fail_by_errno("cannot open /dev/loop-control");
    # Another process may take the free device in between.
    for (1 .. 100) {
        my $number = ioctl($control, LOOP_CTL_GET_FREE, 0);
        defined $number or fail_by_errno("there is no free loop device");
        $number += 0;
        my $name = "/dev/loop$number";
        if (!sysopen(my $device, $name, O_RDWR)) {
            $!{ENOENT} || $!{ENXIO} || $!{EBUSY} or fail_by_errno("cannot open $name");
        }
        elsif (ioctl($device, LOOP_CONFIGURE, loop_config($file, $path))) {
            return { path => $name, file => $device };
        }
        else { $!{EBUSY} or fail_by_errno("cannot set up $name") }
        select(undef, undef, undef, 0.001);
    }
    fail("EBUSY", "other processes took every free loop device");
}

# Loop devices with their files; that of a removed file has another name there.
sub loops {
    my @loops;
    opendir(my $devices, "/sys/block") or fail_by_errno("cannot list block devices");
    for my $name (grep { /^loop\d+$/ } readdir $devices) {
        open(my $file, "<", "/sys/block/$name/loop/backing_file") or next;
        chomp(my $backing = <$file> // "");
        push @loops, { path => "/dev/$name", backing => $backing };
    }
    return @loops;
}

# struct loop_config with struct loop_info64 in it.
sub loop_config {
    my ($file, $path) = @_;
    my $info = pack("Q5 L4 a64 a64 a32 Q2", (0) x 5, 0, 0, 0, LO_FLAGS_AUTOCLEAR, substr($path, 0, 63), "", "", 0, 0);
    my $config = pack("L2", fileno($file), 0) . $info . pack("Q8", (0) x 8);
    return $config;
}

# Paths below the folder that the root is mounted in are given to the kernel relative to that: everybody in the machine
# can read them in its list of mounts, and they would tell where on the host it is.
sub mount_root {
    my ($image, $first, $count, $upper, $work, $at, $more, $usr) = @_;
    (my $folder = $at) =~ s{/[^/]+$}{};
    chdir $folder or fail_by_errno("cannot enter $folder");
    s{^\Q$folder\E/}{} for $upper, $work;
    mkdir(LOWER, 0700) or $!{EEXIST} or fail_by_errno("cannot make $folder/@{[LOWER]}");
    move_mount(mapped_tree($image, $first, $count, "ro"), LOWER, "$folder/@{[LOWER]}");
    my $flags = MS_NOSUID | MS_NODEV | MS_NOATIME;
    mount_overlay($at, $flags, [LOWER], [upperdir => $upper], [workdir => $work], split /,/, $more);
    # An overlay has inodes of its own: with a bind mount, locks of files, and what tells of their use, would be those of
    # every other machine and of the host. Without an upper folder it wants two lower ones; the image's own is empty.
    mount_overlay("$at/usr", $flags | MS_RDONLY, [$usr, LOWER . "/usr"]) if $usr ne "";
    # The overlays have mounts of their own of it.
    umount2(LOWER, MNT_DETACH) or fail_by_errno("cannot unmount $folder/@{[LOWER]}");
    @mounted = grep { $_ ne "$folder/@{[LOWER]}" } @mounted;
}

# `$lower`: folders, the uppermost first. Options: words, or names with paths.
sub mount_overlay {
    my ($at, $flags, $lower, @options) = @_;
    my @words = ("lowerdir=" . join(":", map { escaped($_) } @$lower));
    push @words, map { ref $_ ? "$_->[0]=" . escaped($_->[1]) : $_ } @options;
    mount("overlay", $at, "overlay", $flags, join(",", @words)) or fail_by_errno("cannot mount $at");
    push @mounted, $at;
}

# Commas and colons have a meaning in what overlay takes.
sub escaped {
    my ($path) = @_;
    $path =~ s/([\\,:])/\\$1/g;
    return $path;
}

sub mount_mapped {
    my ($from, $at, $first, $count, $mode) = @_;
    my $lock = lock_beside($at);
    return if is_mounted($at);
    move_mount(mapped_tree($from, $first, $count, $mode), $at, $at);
}

# A copy of the mount with mapped ids, which is nowhere yet: its file.
sub mapped_tree {
    my ($from, $first, $count, $mode) = @_;
    my $number = syscall($NEW{open_tree}, AT_FDCWD, $from, OPEN_TREE_CLONE | O_CLOEXEC);
    $number >= 0 or fail_by_errno("cannot open $from as a mount");
    open(my $tree, "<&=", $number) or fail_by_errno("cannot have $from as a mount");
    my $users = users_of($first, $count);
    my $set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | ($mode eq "ro" ? MOUNT_ATTR_RDONLY : 0);
    my $attributes = pack("Q4", $set, 0, MS_PRIVATE, fileno($users));
    my $empty = "";
    syscall($NEW{mount_setattr}, $number, $empty, AT_EMPTY_PATH, $attributes, length $attributes) == 0
        or fail_by_errno("cannot map the ids of $from");
    return $tree;
}

# `$path` is the whole of `$at`, which may be relative.
sub move_mount {
    my ($tree, $at, $path) = @_;
    my $empty = "";
    syscall($NEW{move_mount}, fileno($tree), $empty, AT_FDCWD, "$at", MOVE_MOUNT_F_EMPTY_PATH) == 0
        or fail_by_errno("cannot mount $path");
    push @mounted, $path;
}

# Begins to make a user namespace in which id 0 is FIRST of the host, and so on.
sub begin_users {
    my ($first, $count) = @_;
    return if $users{"$first $count"};
    pipe(my $ready, my $say_ready) or fail_by_errno("cannot make a pipe");
    pipe(my $end,   my $say_end)   or fail_by_errno("cannot make a pipe");
    my $pid = fork() // fail_by_errno("cannot fork");
    if ($pid == 0) {
        close $say_end;
        # Those of others would not end while it has them.
        close $_->{say_end} for values %users;
        # The maps are written while it waits; then it ends at once, without the END blocks of its parent.
        syswrite($say_ready, "1") if syscall($numbers->{unshare}, CLONE_NEWUSER) == 0;
        close $say_ready;
        sysread($end, my $byte, 1);
        syscall($numbers->{exit_group}, 0);
    }
    close $say_ready;
    $users{"$first $count"} = { pid => $pid, ready => $ready, say_end => $say_end };
}

# Its file.
sub users_of {
    my ($first, $count) = @_;
    my $made = $users{"$first $count"};
    return $made->{file} if $made->{file};
    sysread($made->{ready}, my $byte, 1) or fail("EPERM", "cannot make a user namespace");
    my $pid = $made->{pid};
    for my $map ("uid_map", "gid_map") {
        open(my $file, ">", "/proc/$pid/$map") or fail_by_errno("cannot open a $map");
        defined syswrite($file, "0 $first $count") or fail_by_errno("cannot map ids from $first on");
    }
    open($made->{file}, "<", "/proc/$pid/ns/user") or fail_by_errno("cannot open a user namespace");
    close $made->{say_end};
    return $made->{file};
}

sub end_users {
    for my $made (values %users) {
        close $made->{say_end};
        waitpid($made->{pid}, 0);
    }
    %users = ();
}

sub unmount {
    my ($at) = @_;
    check_folder($at);
    for my $mount (reverse mounts()) {
        unmount_one($mount->{at}) if $mount->{at} eq $at || index($mount->{at}, "$at/") == 0;
    }
}

# Below an empty path, or the root, is everything of this computer.
sub check_folder {
    my ($path) = @_;
    $path =~ m{\A(?:/[^/]+)+\z} && $path !~ m{/\.\.?(?:/|\z)} or fail("EINVAL", "'$path' is no folder of machines");
}

# The processes of a machine that was killed let go of its mounts a moment later. What is held longer than that is
# taken out of sight: it goes, and its loop device with it, when the last who holds it ends.
sub unmount_one {
    my ($at) = @_;
    for (1 .. 100) {
        return if umount2($at, 0) || $!{EINVAL} || $!{ENOENT};
        $!{EBUSY} or fail_by_errno("cannot unmount $at");
        select(undef, undef, undef, 0.002);
    }
    umount2($at, MNT_DETACH) or fail_by_errno("cannot unmount $at");
}

sub free_loops {
    my ($path) = @_;
    check_folder($path);
    for my $loop (loops()) {
        (my $backing = $loop->{backing}) =~ s/ \(deleted\)$//;
        next if $backing ne $path && index($backing, "$path/") != 0;
        sysopen(my $device, $loop->{path}, O_RDONLY) or next;
        ioctl($device, LOOP_CLR_FD, 0) or $!{ENXIO} or fail_by_errno("cannot free $loop->{path}");
    }
}
