# The machine's first process: how it is started, by bubblewrap or an OCI runtime, and when it is ready.
#
# It is the small program of `first-process.ts`. Once it is in place it says so on a descriptor, waits for a byte that
# tells it that its parent is the supervisor now, asks to be killed when that dies, says so, and sleeps. The launcher
# between the two is gone by then; but one that gives the machine a kernel of its own stays, and stands for the machine.
package FirstProcess;
use strict;
use warnings;
use Errno qw(EINTR);
use Console;
use Inside;
use Kernel;

use constant {
    READY_MS => 30_000,
    # On the stage.
    USER_NAMESPACE => "/tmp/user-namespace",
    EMPTY_FILE     => "/tmp/empty",
    EMPTY_FOLDER   => "/tmp/empty-folder",
};

my @DEVICES = (
    [null => 1, 3], [zero => 1, 5], [full => 1, 7], [random => 1, 8], [urandom => 1, 9], [tty => 5, 0],
);

# Returns its pid on the host. Dies with a reason for people.
sub start {
    my ($config) = @_;
    socketpair(my $ready, my $its_ready, Kernel::AF_UNIX, Kernel::SOCK_STREAM, Kernel::AF_UNSPEC) or die "$!\n";
    socketpair(my $sync, my $its_sync, Kernel::AF_UNIX, Kernel::SOCK_STREAM, Kernel::AF_UNSPEC) or die "$!\n";
    pipe(my $info, my $info_in) or die "$!\n";
    my @console = map { [_console($_, $config)] } qw(stdout stderr);
    local $config->{supervisor} = $$;
    my $launcher = fork;
    die "fork: $!\n" if !defined $launcher;
    if ($launcher == 0) {
        close $sync;
        my %handles = (
            1 => $console[0][1], 2 => $console[1][1], $config->{ready_number} => $its_ready, sync => $its_sync,
            $config->{info_number} ? ($config->{info_number} => $info_in) : (),
        );
        eval { _launch($config, \%handles) };
        my $text = ref $@ ? "could not $@->[1]: " . _text_of($@->[0]) . "\n" : $@;
        # Once it is in its place the console is standard error.
        syswrite($handles{2}, $text) // syswrite(STDERR, $text);
        Kernel::exit_now(1);
    }
    close $_ for $its_ready, $its_sync, $info_in, map { $_->[1] } @console;
    my $pid = eval { _guide($config, $launcher, $ready, $sync, $info) };
    my $reason = $@;
    if (!defined $pid) {
        kill KILL => $launcher;
        chomp $reason;
        die "$reason" . _complaints(map { $_->[0] } @console) . "\n";
    }
    Console::take($_->[2], $_->[0]) for @console;
    return $pid;
}

# What those inside may open again (`/proc/1/fd/1`) must be theirs.
sub _console {
    my ($name, $config) = @_;
    pipe(my $read, my $write) or die "$!\n";
    chown($config->{first_id} + $config->{agent_uid}, $config->{first_id} + $config->{agent_gid}, $write)
        or die "the console: $!\n";
    return ($read, $write, $name);
}

sub _guide {
    my ($config, $launcher, $ready, $sync, $info) = @_;
    if ($config->{owns_user_namespace}) {
        _expect($sync, "u", "was not in a user namespace");
        _map_ids($config, $launcher);
        syswrite($sync, "m");
    }
    _expect($ready, "r", "did not start");
    my $pid = $config->{kernel} ? $launcher
        : $config->{pid_file}   ? _pid_of_file($config->{pid_file}, $launcher)
        :                         _pid_of_info($info);
    if ($config->{pid_file}) {
        for my $file (@{ $config->{join} }) { Inside::write_file($file, $pid) or die "cannot join a cgroup: $!\n" }
    }
    elsif ($pid != $launcher) { kill KILL => $launcher; waitpid $launcher, 0 }
    syswrite($ready, "g");
    _expect($ready, "d", "did not settle");
    return $pid;
}

sub _map_ids {
    my ($config, $pid) = @_;
    my $map = "0 $config->{first_id} $config->{ids}\n";
    for my $name (qw(gid_map uid_map)) {
        Inside::write_file("/proc/$pid/$name", $map) or die "cannot map its ids: $!\n";
    }
    return;
}

sub _pid_of_info {
    my ($info) = @_;
    my $text = "";
    while (1) {
        my ($pid) = $text =~ /"child-pid": *(\d+)/;
        return $pid if defined $pid;
        my $count = sysread($info, $text, 4096, length $text);
        next if !defined $count && $! == EINTR;
        die "its number was not told\n" if !$count;
    }
}

# The launcher writes the file, and ends when it has done its part.
sub _pid_of_file {
    my ($file, $launcher) = @_;
    waitpid $launcher, 0;
    die "its launcher failed\n" if $?;
    my ($pid) = Inside::read_file($file) =~ /^(\d+)/ or die "its number was not written\n";
    return $pid;
}

# A byte, in time.
sub _expect {
    my ($handle, $byte, $complaint) = @_;
    my $until = Kernel::now_ms() + READY_MS;
    while (1) {
        my $bits = "";
        vec($bits, fileno $handle, 1) = 1;
        my $wait = ($until - Kernel::now_ms()) / 1000;
        die "the first process $complaint in time\n" if $wait <= 0;
        my $count = select($bits, undef, undef, $wait);
        next if $count < 0 && $! == EINTR;
        next if $count == 0;
        my $got = sysread($handle, my $text, 1);
        die "the first process $complaint\n" if !$got || $text ne $byte;
        return;
    }
}

sub _complaints {
    my $text = "";
    for my $handle (@_) {
        fcntl($handle, Kernel::F_SETFL, Kernel::O_NONBLOCK);
        sysread($handle, $text, 4096, length $text);
    }
    $text =~ s/\s+\z//;
    return length $text ? ": $text" : "";
}

sub _text_of { local $! = $_[0]; return "$!" }

# In the child. Does not return when it works.
sub _launch {
    my ($config, $handles) = @_;
    $SIG{$_} = "DEFAULT" for qw(PIPE CHLD TERM INT HUP);
    # Until the first process can see to that itself, what is started here dies with the supervisor.
    Kernel::prctl(Kernel::PR_SET_PDEATHSIG, Kernel::SIGKILL) or Inside::give_up("be bound to its parent");
    getppid() == $config->{supervisor} or die "its supervisor has gone\n";
    Kernel::setsid() or Inside::give_up("begin a session");
    # Folders that are made for what is mounted belong to the machine's root; the others enter them.
    umask 022;
    # A runtime with a pid file makes cgroups of its own; the first process is moved from there when it is known.
    for my $file ($config->{pid_file} ? () : @{ $config->{join} }) {
        Inside::write_file($file, "0") or Inside::give_up("join a cgroup");
    }
    Inside::write_file("/proc/self/oom_score_adj", "0") or Inside::give_up("be an ordinary candidate for the end");
    my %files = map { $_->[0] => Inside::open_file($_->[1]) } @{ $config->{passed} };
    $files{0} = Inside::open_file("/dev/null") if $config->{ready_number} != 0;
    _stage($config);
    if ($config->{owns_user_namespace}) { _enter_users($config, $handles->{sync}) }
    else                                { _stage_users($config) }
    # Whoever changes his ids is free again.
    Kernel::prctl(Kernel::PR_SET_PDEATHSIG, Kernel::SIGKILL) or Inside::give_up("be bound to its parent");
    delete $handles->{sync};
    Inside::place(%$handles, %files);
    chdir "/" or Inside::give_up("enter /");
    Kernel::execve($config->{launch}[0], $config->{launch}, ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]);
    Inside::give_up("run $config->{launch}[0]");
    return;
}

# Makes a user namespace, and becomes the root of it: tells that it is there, and waits for its ids.
#
# What the kernel counts by user inside (watches of files, bytes of queues) it also counts for whoever has made the
# namespace. By the host's root all machines would share that, and with the host. So it is made as the user who is the
# machine's root.
sub _enter_users {
    my ($config, $sync) = @_;
    # For all of its users together, what its maker may have.
    Kernel::limit(Kernel::RLIMIT_MSGQUEUE, $config->{message_bytes}) or Inside::give_up("limit message queues");
    Kernel::act_as($config->{first_id})      or Inside::give_up("act as the machine's root");
    Kernel::unshare(Kernel::CLONE_NEWUSER)   or Inside::give_up("make a user namespace");
    syswrite($sync, "u");
    sysread($sync, my $byte, 1) or die "the maps were not written\n";
    Kernel::set_ids(0, 0) or Inside::give_up("become the root of the user namespace");
    for my $row (@{ $config->{user_limit} }) {
        my ($name, $most) = @$row;
        # Not every kernel counts it; and what all may have of it holds in any case.
        Inside::write_file("/proc/sys/user/$name", $most) or warn "user.$name is not limited: $!\n";
    }
    return;
}

# For a launcher that joins it by a file.
sub _stage_users {
    my ($config) = @_;
    socketpair(my $sync, my $its_sync, Kernel::AF_UNIX, Kernel::SOCK_STREAM, Kernel::AF_UNSPEC) or die "$!\n";
    my $pid = fork;
    die "fork: $!\n" if !defined $pid;
    if ($pid == 0) {
        close $sync;
        my $is_made = eval { _enter_users($config, $its_sync); 1 };
        syswrite($its_sync, $is_made ? "s" : ref $@ ? "could not $@->[1]: " . _text_of($@->[0]) : "$@");
        # Until it is held.
        sysread($its_sync, my $byte, 1);
        Kernel::exit_now(0);
    }
    close $its_sync;
    _answer_of($sync, "u");
    _map_ids($config, $pid);
    syswrite($sync, "m");
    _answer_of($sync, "s");
    _put_file(USER_NAMESPACE, "", 0444);
    Kernel::mount("/proc/$pid/ns/user", USER_NAMESPACE, 0, Kernel::MS_BIND, 0)
        or Inside::give_up("stage the user namespace");
    close $sync;
    waitpid $pid, 0;
    return;
}

sub _answer_of {
    my ($sync, $wanted) = @_;
    sysread($sync, my $answer, 4096);
    die length($answer // "") ? "$answer\n" : "its user namespace was not made\n" if ($answer // "") ne $wanted;
    return;
}

# The folders and programs that the machine is made of, where its root may go to them: those on the host may lie below
# folders that only the host's root may enter. Nobody else sees it: this process has mounts of its own from here on.
sub _stage {
    my ($config) = @_;
    my $staged = $config->{staged};
    Kernel::unshare(Kernel::CLONE_NEWNS) or Inside::give_up("have mounts of its own");
    Kernel::mount("none", "/", 0, Kernel::MS_SLAVE | Kernel::MS_REC, 0) or Inside::give_up("keep its mounts to itself");
    # Opened before the stage is there, which may cover them.
    my @sources = map { Inside::open_file($_->[0]) } @$staged;
    my @programs = map { [$_->[1], Inside::read_file($_->[0])] } @{ $config->{copied} };
    Kernel::mount("tmpfs", "/tmp", "tmpfs", Kernel::MS_NOSUID | Kernel::MS_NODEV, "mode=0755,size=64k")
        or Inside::give_up("mount a stage");
    for my $row (@$staged) {
        my ($from, $name) = @$row;
        my $handle = shift @sources;
        my $source = "/proc/self/fd/" . fileno $handle;
        mkdir "/tmp/$name" or Inside::give_up("make the stage");
        Kernel::mount($source, "/tmp/$name", 0, Kernel::MS_BIND | Kernel::MS_REC, 0) or Inside::give_up("stage $from");
    }
    _put_file("/tmp/$_->[0]", $_->[1], 0555) for @programs;
    _put_file(EMPTY_FILE, "", 0444);
    mkdir EMPTY_FOLDER, 0555 or Inside::give_up("make the stage");
    _stage_devices() if !$config->{kernel};
    return;
}

sub _put_file {
    my ($path, $bytes, $mode) = @_;
    sysopen(my $file, $path, Kernel::O_WRONLY | Kernel::O_CREAT | Kernel::O_EXCL, $mode) or Inside::give_up("make $path");
    (syswrite($file, $bytes) // -1) == length $bytes or Inside::give_up("write $path");
    return;
}

# Launchers mount the devices that they find in `/dev`. With the very files of the host, locks on them and what tells of
# their use would be common to all machines.
sub _stage_devices {
    Kernel::mount("tmpfs", "/dev", "tmpfs", Kernel::MS_NOSUID | Kernel::MS_NOEXEC, "mode=0755,size=64k")
        or Inside::give_up("mount devices");
    for my $row (@DEVICES) {
        my ($name, $major, $minor) = @$row;
        Kernel::make_device("/dev/$name", $major, $minor, 0666) or Inside::give_up("make /dev/$name");
    }
    return;
}

1;
