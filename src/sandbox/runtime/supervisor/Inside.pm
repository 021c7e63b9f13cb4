# The inside of the machine, from outside: its namespaces, and how a process becomes one of its own.
#
# The namespaces are held open from the moment the first process is ready, when nothing of the tenant has run yet, so
# that nothing inside can put others in their place.
package Inside;
use strict;
use warnings;
use Kernel;

# What package managers need: chown, dac_override, fowner, fsetid, setgid, setuid.
use constant ROOT_CAPABILITIES => 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7;
# Higher than any number that is handed on.
use constant SPARE_NUMBERS => 64;

# Those that a command enters, the user namespace last: the others are entered by the right of the host's root.
my @ENTERED = (
    [mnt    => Kernel::CLONE_NEWNS],
    [net    => Kernel::CLONE_NEWNET],
    [ipc    => Kernel::CLONE_NEWIPC],
    [uts    => Kernel::CLONE_NEWUTS],
    [cgroup => Kernel::CLONE_NEWCGROUP],
    [user   => Kernel::CLONE_NEWUSER],
);

my (%inside, %outside);
# The folder of its terminals; the system makes a new one for whoever opens its `ptmx`.
my $terminals;
my ($filter, $last_capability);

sub prepare {
    my ($filter_file) = @_;
    $filter          = defined $filter_file ? read_file($filter_file) : undef;
    $last_capability = 0 + read_file("/proc/sys/kernel/cap_last_cap");
    for my $name (qw(pid net uts)) { $outside{$name} = open_file("/proc/self/ns/$name") }
    return;
}

sub hold {
    my ($pid) = @_;
    for my $name (qw(pid mnt net ipc uts cgroup user)) { $inside{$name} = open_file("/proc/$pid/ns/$name") }
    # A link that a tenant left on its disk would lead out of the machine.
    for my $path (map { "/proc/$pid/root$_" } qw(/dev /dev/pts)) { die "a link in place of /dev\n" if -l $path }
    sysopen($terminals, "/proc/$pid/root/dev/pts", Kernel::O_RDONLY | Kernel::O_DIRECTORY)
        or die "/dev/pts of the machine: $!\n";
    return;
}

# Of a machine with a kernel of its own: where its launcher is, and what the network and the name of the machine are.
sub hold_around {
    my ($launcher, $kernel) = @_;
    for my $name (qw(pid mnt user)) { $inside{$name} = open_file("/proc/$launcher/ns/$name") }
    for my $name (qw(net uts)) { $inside{$name} = open_file("/proc/$kernel/ns/$name") }
    sysopen($terminals, "/dev/pts", Kernel::O_RDONLY | Kernel::O_DIRECTORY) or die "/dev/pts: $!\n";
    return;
}

# Without it the machine's mounts would stay for as long as we do.
sub release { %inside = (); undef $terminals; return }

sub is_held { return exists $inside{pid} }

# Like `fork`; the child is in the machine's pid namespace, and in nothing else of it yet.
sub fork_into {
    Kernel::setns($inside{pid}, Kernel::CLONE_NEWPID) or return;
    my $pid   = fork;
    my $error = $! + 0;
    return 0 if defined $pid && $pid == 0;
    Kernel::setns($outside{pid}, Kernel::CLONE_NEWPID) or die "back to the pid namespace: $!\n";
    $! = $error;
    return $pid;
}

# Calls the function in the machine's network: a socket belongs for ever to the network that it was made in.
sub in_network { my ($function) = @_; return _visit("net", Kernel::CLONE_NEWNET, $function) }

sub set_hostname {
    my ($name) = @_;
    return _visit("uts", Kernel::CLONE_NEWUTS, sub { Kernel::sethostname($name) });
}

# Returns what the function returns, with its `$!`.
sub _visit {
    my ($name, $type, $function) = @_;
    Kernel::setns($inside{$name}, $type) or return;
    my $result = eval { $function->() };
    my ($error, $died) = ($! + 0, $@);
    Kernel::setns($outside{$name}, $type) or die "back to the $name namespace: $!\n";
    die $died if $died;
    $! = $error;
    return $result;
}

# `struct ifreq`: a name of 16 bytes, the flags, and room.
sub raise_loopback {
    return in_network(sub {
        socket(my $socket, Kernel::AF_INET, Kernel::SOCK_STREAM, 0) or return 0;
        my $request = pack("a16 s x22", "lo", 0);
        ioctl($socket, Kernel::SIOCGIFFLAGS, $request) or return 0;
        my (undef, $flags) = unpack("a16 s", $request);
        $request = pack("a16 s x22", "lo", $flags | Kernel::IFF_UP);
        return ioctl($socket, Kernel::SIOCSIFFLAGS, $request) ? 1 : 0;
    });
}

# A terminal of the machine that belongs to these ids of the host: both its sides.
sub open_terminal {
    my ($uid, $gid, $size) = @_;
    my $folder = "/proc/self/fd/" . fileno($terminals);
    sysopen(my $master, "$folder/ptmx", Kernel::O_RDWR | Kernel::O_NOCTTY | Kernel::O_NONBLOCK) or return;
    my $unlock = pack("i", 0);
    ioctl($master, Kernel::TIOCSPTLCK, $unlock) or return;
    my $number = pack("I", 0);
    ioctl($master, Kernel::TIOCGPTN, $number) or return;
    my $slave_number = ioctl($master, Kernel::TIOCGPTPEER, Kernel::O_RDWR | Kernel::O_NOCTTY) or return;
    open(my $slave, "+<&=", $slave_number + 0) or return;
    fcntl($slave, Kernel::F_SETFD, Kernel::FD_CLOEXEC) or return;
    chown($uid, $gid, "$folder/" . unpack("I", $number)) or return;
    set_terminal_size($master, $size) or return;
    return ($master, $slave);
}

# How many there can be. Whoever mounted them could not say it, and gave them these modes.
sub limit_terminals {
    my ($most) = @_;
    return Kernel::reconfigure($terminals, mode => "620", ptmxmode => "666", max => $most);
}

sub set_terminal_size {
    my ($master, $size) = @_;
    my ($columns, $rows) = @$size;
    return ioctl($master, Kernel::TIOCSWINSZ, pack("S4", $rows, $columns, 0, 0));
}

# Those that `enter` needs.
sub handles { return values %inside }

# In a child of `fork_into`: makes it a process of the machine, as the root of its user namespace. Dies with the errno and
# what could not be done, as `become` does. `$join` are the files of its cgroups; of message queues it may have so many
# bytes.
sub enter {
    my ($join, $open_files, $message_bytes) = @_;
    for my $file (@$join) {
        write_file($file, "0") or give_up("join a cgroup");
    }
    write_file("/proc/self/oom_score_adj", "0") or give_up("be an ordinary candidate when memory is short");
    Kernel::limit(Kernel::RLIMIT_CORE, 0) or give_up("limit core files");
    Kernel::limit(Kernel::RLIMIT_NOFILE, $open_files) or give_up("limit open files");
    Kernel::limit(Kernel::RLIMIT_MSGQUEUE, $message_bytes) or give_up("limit message queues");
    for my $row (grep { $inside{ $_->[0] } } @ENTERED) {
        my ($name, $type) = @$row;
        Kernel::setns($inside{$name}, $type) or give_up("enter the $name namespace");
    }
    Kernel::set_ids(0, 0) or give_up("change the ids");
    return;
}

# After that: makes it one that may do no more than any other there.
sub become {
    my ($is_root, $uid, $gid) = @_;
    my $capabilities = $is_root ? ROOT_CAPABILITIES : 0;
    Kernel::bound_capabilities($capabilities, $last_capability) or give_up("drop capabilities");
    Kernel::set_ids($uid, $gid)               or give_up("change the ids");
    Kernel::set_capabilities($capabilities)   or give_up("drop capabilities");
    Kernel::prctl(Kernel::PR_SET_NO_NEW_PRIVS, 1) or give_up("renounce new privileges");
    umask 022;
    return;
}

# The last step before the program: from here on only what the filter allows.
sub filter { return !defined $filter || Kernel::filter_system_calls($filter) }

# Each handle gets its number, and nothing else stays open.
sub place {
    my (%handles) = @_;
    my $highest = 0;
    my %spare;
    for my $number (keys %handles) {
        $spare{$number} = fcntl($handles{$number}, Kernel::F_DUPFD, SPARE_NUMBERS) or give_up("keep a descriptor");
        $highest = $number if $number > $highest;
    }
    for my $number (sort { $a <=> $b } keys %spare) {
        Kernel::dup3($spare{$number}, $number) or give_up("place a descriptor");
    }
    Kernel::close_from($highest + 1) or give_up("close what is not needed");
    return;
}

sub give_up { my ($what) = @_; die [$! + 0, $what] }

sub open_file {
    my ($path) = @_;
    sysopen(my $handle, $path, Kernel::O_RDONLY) or die "$path: $!\n";
    return $handle;
}

sub read_file {
    my ($path) = @_;
    my $handle = open_file($path);
    binmode $handle;
    my $bytes = "";
    while (1) {
        my $count = sysread($handle, $bytes, 65536, length $bytes);
        die "$path: $!\n" if !defined $count;
        last if $count == 0;
    }
    return $bytes;
}

# In one write, as the files of the kernel want it.
sub write_file {
    my ($path, $text) = @_;
    sysopen(my $handle, $path, Kernel::O_WRONLY | Kernel::O_CREAT | Kernel::O_TRUNC, 0600) or return 0;
    my $count = syswrite($handle, $text);
    return defined $count && $count == length $text;
}

1;
