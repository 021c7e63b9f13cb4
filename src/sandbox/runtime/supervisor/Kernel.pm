# System calls that Perl has no function for, and the constants of those for which it has some. Each function returns
# true, or false with `$!` set. Modules that know such constants (POSIX, Socket, Fcntl) take longer to load than all
# of the supervisor.
package Kernel;
use strict;
use warnings;
use Config ();

my %NUMBERS;
BEGIN { %NUMBERS = (
    x86_64 => {
        capset        => 126,
        clock_gettime => 228,
        close         => 3,
        dup3          => 292,
        execve        => 59,
        exit_group    => 231,
        keyctl        => 250,
        mknodat       => 259,
        mount         => 165,
        prctl         => 157,
        prlimit64     => 302,
        setgroups     => 116,
        sethostname   => 170,
        setns         => 308,
        setresgid     => 119,
        setresuid     => 117,
        setsid        => 112,
        unshare       => 272,
    },
    aarch64 => {
        capset        => 91,
        clock_gettime => 113,
        close         => 57,
        dup3          => 24,
        execve        => 221,
        exit_group    => 94,
        keyctl        => 219,
        mknodat       => 33,
        mount         => 40,
        prctl         => 167,
        prlimit64     => 261,
        setgroups     => 159,
        sethostname   => 161,
        setns         => 268,
        setresgid     => 149,
        setresuid     => 147,
        setsid        => 157,
        unshare       => 97,
    },
) }

my ($machine, $numbers);

BEGIN {
    ($machine) = $Config::Config{archname} =~ /^([^-]+)/;
    $numbers = $NUMBERS{$machine} or die "no system call numbers are known for $machine\n";
}

# The same everywhere.
my $CLOSE_RANGE = 436;
my ($FSCONFIG, $FSPICK) = (431, 433);

use constant {
    CLONE_NEWNS     => 0x00020000,
    CLONE_NEWCGROUP => 0x02000000,
    CLONE_NEWUTS    => 0x04000000,
    CLONE_NEWIPC    => 0x08000000,
    CLONE_NEWUSER   => 0x10000000,
    CLONE_NEWPID    => 0x20000000,
    CLONE_NEWNET    => 0x40000000,

    MS_NOSUID => 2,
    MS_NODEV  => 4,
    MS_NOEXEC => 8,
    MS_BIND   => 4096,
    MS_REC    => 16384,
    MS_SLAVE  => 1 << 19,

    CLOCK_MONOTONIC => 1,

    PR_SET_PDEATHSIG        => 1,
    PR_SET_DUMPABLE         => 4,
    PR_SET_SECCOMP          => 22,
    PR_CAPBSET_DROP         => 24,
    PR_SET_SECUREBITS       => 28,
    SECBIT_NO_SETUID_FIXUP  => 4,
    PR_SET_CHILD_SUBREAPER  => 36,
    PR_SET_NO_NEW_PRIVS     => 38,
    SECCOMP_MODE_FILTER     => 2,
    SIGKILL                 => 9,
    LINUX_CAPABILITY_V3     => 0x20080522,
    KEYCTL_JOIN_SESSION     => 1,
    RLIMIT_CORE             => 4,
    RLIMIT_NOFILE           => 7,
    RLIMIT_MSGQUEUE         => 12,
    FSPICK_CLOEXEC          => 1,
    FSPICK_EMPTY_PATH       => 8,
    FSCONFIG_SET_STRING     => 1,
    FSCONFIG_CMD_RECONFIGURE => 7,
    S_IFCHR                 => 0020000,
    AT_FDCWD                => -100,
    SIOCGIFFLAGS            => 0x8913,
    SIOCSIFFLAGS            => 0x8914,
    IFF_UP                  => 1,
    O_RDONLY                => 0,
    O_WRONLY                => 1,
    O_RDWR                  => 2,
    O_CREAT                 => 0100,
    O_EXCL                  => 0200,
    O_NOCTTY                => 0400,
    O_TRUNC                 => 01000,
    O_NONBLOCK              => 04000,
    # One of the few that differ.
    O_DIRECTORY             => $machine eq "aarch64" ? 040000 : 0200000,
    F_DUPFD                 => 0,
    F_SETFD                 => 2,
    F_SETFL                 => 4,
    FD_CLOEXEC              => 1,
    AF_UNSPEC               => 0,
    AF_UNIX                 => 1,
    AF_INET                 => 2,
    AF_INET6                => 10,
    SOCK_STREAM             => 1,
    SOL_SOCKET              => 1,
    SO_REUSEADDR            => 2,
    SO_ERROR                => 4,
    BACKLOG                 => 4096,
    FIONREAD                => 0x541B,
    TIOCSCTTY               => 0x540E,
    TIOCGPGRP               => 0x540F,
    TIOCSWINSZ              => 0x5414,
    TIOCGPTN                => 0x80045430,
    TIOCSPTLCK              => 0x40045431,
    TIOCGPTPEER             => 0x5441,
};

# Numbers must be numbers for `syscall`, and strings are passed by their address.
sub call { my $name = shift; return syscall($numbers->{$name}, @_) }

sub mount {
    my ($source, $at, $type, $flags, $data) = @_;
    return call("mount", $source, $at, $type, $flags + 0, $data) == 0;
}

sub setns { my ($handle, $type) = @_; return call("setns", fileno($handle), $type + 0) == 0 }
sub unshare { my ($flags) = @_; return call("unshare", $flags + 0) == 0 }
sub setsid { return call("setsid") != -1 }
sub dup3 { my ($from, $to) = @_; return call("dup3", $from + 0, $to + 0, 0) != -1 }
sub prctl { my ($option, $value) = @_; return call("prctl", $option + 0, $value + 0, 0, 0, 0) == 0 }
sub sethostname { my ($name) = @_; return call("sethostname", "$name", length $name) == 0 }
sub exit_now { my ($code) = @_; call("exit_group", $code + 0) }

# A key ring of one's own, so that nothing finds that of whoever started us. Kernels without key rings have no such
# call.
sub leave_keyring { call("keyctl", KEYCTL_JOIN_SESSION, 0); return 1 }

# Closes everything from this number on.
sub close_from {
    my ($first) = @_;
    return 1 if syscall($CLOSE_RANGE, $first + 0, 0xFFFFFFFF, 0) == 0;
    opendir(my $listing, "/proc/self/fd") or return 0;
    my @numbers = grep { /^\d+$/ && $_ >= $first && $_ != fileno($listing) } readdir $listing;
    closedir $listing;
    for my $number (@numbers) {
        open(my $handle, "<&=", $number) or next;
        close $handle;
    }
    return 1;
}

# Closes all others. By the system call: closing a second handle of a descriptor would leave it open for the first.
sub close_all_but {
    my %is_kept = map { $_ => 1 } @_;
    opendir(my $listing, "/proc/self/fd") or return 0;
    my @numbers = grep { /^\d+$/ && !$is_kept{$_} && $_ != fileno($listing) } readdir $listing;
    closedir $listing;
    call("close", $_ + 0) for @numbers;
    return 1;
}

# Milliseconds on a clock that never goes back.
sub now_ms {
    my $time = "\0" x 16;
    call("clock_gettime", CLOCK_MONOTONIC, $time) == 0 or die "clock_gettime: $!\n";
    my ($seconds, $nanoseconds) = unpack("q q", $time);
    return $seconds * 1000 + $nanoseconds / 1_000_000;
}

sub set_ids {
    my ($uid, $gid) = @_;
    return call("setgroups", 0, 0) == 0
        && call("setresgid", $gid + 0, $gid + 0, $gid + 0) == 0
        && call("setresuid", $uid + 0, $uid + 0, $uid + 0) == 0;
}

# Everything that it may do it may do as before.
sub act_as {
    my ($uid) = @_;
    return prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) && call("setresuid", -1, $uid + 0, -1) == 0;
}

sub make_device {
    my ($path, $major, $minor, $mode) = @_;
    return call("mknodat", AT_FDCWD, "$path", S_IFCHR | $mode, $major << 8 | $minor) == 0 && chmod $mode, $path;
}

# The file system that is mounted at the folder gets these options, and those that are not named their defaults.
sub reconfigure {
    my ($folder, %options) = @_;
    my $empty  = "";
    my $number = syscall($FSPICK, fileno $folder, $empty, FSPICK_EMPTY_PATH | FSPICK_CLOEXEC);
    return 0 if $number < 0;
    open(my $context, "<&=", $number) or return 0;
    for my $name (sort keys %options) {
        my ($key, $value) = ("$name", "$options{$name}");
        syscall($FSCONFIG, $number, FSCONFIG_SET_STRING, $key, $value, 0) == 0 or return 0;
    }
    return syscall($FSCONFIG, $number, FSCONFIG_CMD_RECONFIGURE, 0, 0, 0) == 0;
}

# As much as asked for, or as this process may have: not every root may raise its limits.
sub limit {
    my ($resource, $value) = @_;
    my $current = "\0" x 16;
    call("prlimit64", 0, $resource + 0, 0, $current) == 0 or return 0;
    my (undef, $most) = unpack("QQ", $current);
    for my $to ($value, $value < $most ? $value : $most) {
        return 1 if call("prlimit64", 0, $resource + 0, pack("QQ", $to, $to), 0) == 0;
    }
    return 0;
}

# Permitted and effective capabilities, by their bits; none is inheritable.
sub set_capabilities {
    my ($bits) = @_;
    my ($low, $high) = ($bits & 0xFFFFFFFF, $bits >> 32);
    my $data = pack("L6", $low, $low, 0, $high, $high, 0);
    return call("capset", pack("Ll", LINUX_CAPABILITY_V3, 0), $data) == 0;
}

# Takes all capabilities but these out of what programs can ever gain.
sub bound_capabilities {
    my ($bits, $last) = @_;
    for my $capability (0 .. $last) {
        next if $bits >> $capability & 1;
        prctl(PR_CAPBSET_DROP, $capability) or return 0;
    }
    return 1;
}

# A program of `struct sock_filter`, eight bytes each.
sub filter_system_calls {
    my ($program) = @_;
    my $header = pack("S x6 P", length($program) / 8, $program);
    return call("prctl", PR_SET_SECCOMP, SECCOMP_MODE_FILTER, $header, 0, 0) == 0;
}

# Does not return when it works. Only what is in `$env` is in the environment.
sub execve {
    my ($path, $argv, $env) = @_;
    my @words   = map { "$_\0" } @$argv;
    my @entries = map { "$_\0" } @$env;
    my $argv_pointers = pack("p*", @words, undef);
    my $env_pointers  = pack("p*", @entries, undef);
    return call("execve", "$path\0", $argv_pointers, $env_pointers) == 0;
}

# Addresses of sockets, as the system has them.
sub unix_address { my ($path) = @_; return pack("S a108", AF_UNIX, $path) }
sub inet_address { my ($port, $address) = @_; return pack("S n a4 x8", AF_INET, $port, $address) }
sub inet6_address { my ($port, $address) = @_; return pack("S n N a16 N", AF_INET6, $port, 0, $address, 0) }

1;
