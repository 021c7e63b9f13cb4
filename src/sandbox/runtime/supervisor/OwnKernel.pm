# Commands of a machine that has a kernel of its own (gVisor), which no process of the host can enter: they are begun by
# the runtime's command line (`runsc exec`), which runs for as long as the command does and has its three streams.
#
# It runs where the launcher does, in its mounts and its user namespace. It writes the command's number inside to a pipe
# as soon as the command runs, and what it does to another: by its exit code alone a command that was killed cannot be
# told from one that ended with a code above 128. Signals are sent by a program in the machine, which reads from its
# input whom to send which.
package OwnKernel;
use strict;
use warnings;
use Errno qw(EAGAIN EINTR);
use Inside;
use Kernel;
use Loop;
use Process;

use constant {
    NUMBER_FD  => 3,
    REPORT_FD  => 4,
    PROCESS_FD => 5,
    # In the folder of the machine, for a moment.
    PROCESS_FILE => "process.json",
    # Of a report, its end.
    REPORT_BYTES => 4096,
    CHUNK_BYTES  => 64 * 1024,
    SIGHUP       => 1,
    # What `Inside` has as bits.
    ROOT_CAPABILITIES => [qw(CAP_CHOWN CAP_DAC_OVERRIDE CAP_FOWNER CAP_FSETID CAP_SETGID CAP_SETUID)],
    # Where the machine's root is on the host, in the folder of the machine.
    ROOT => "root",
};

# Words that begin what is run: program, flags, `exec`. The machine's name, and the path of what sends signals.
my (@exec, $machine, $signaller);
my ($first_id, @limits);
# By the number of a run of `runsc exec` that is a command: pipes of its reports, what came out of them, the command's
# number inside, and signals that wait for it.
my %runs;

sub is_used { return @exec > 0 }

# `$launcher`: its number, and that of the machine.
sub prepare {
    my ($config, $launcher) = @_;
    ($machine, $signaller, my $pid_file) = @{ $config->{kernel} };
    my ($kernel) = Inside::read_file($pid_file) =~ /^(\d+)/ or die "the number of its kernel was not written\n";
    Inside::hold_around($launcher, $kernel);
    @exec     = @{ $config->{exec} };
    $first_id = $config->{first_id};
    @limits   = @$config{qw(join open_files message_bytes)};
    return;
}

# Like `Process::start`.
sub start {
    my ($request, $terminal) = @_;
    my ($mine, $its) = $terminal ? ({}, [($terminal) x 3]) : Process::pipes();
    my ($number, $number_in) = _pipe_of_runtime();
    my ($report, $report_in) = _pipe_of_runtime();
    pipe(my $status, my $status_in) or die "$!\n";
    my @flags = _descriptor("debug-log", REPORT_FD);
    my @words = (_descriptor("internal-pid-file", NUMBER_FD), _descriptor("process", PROCESS_FD), $machine);
    my %handles = (0 => $its->[0], 1 => $its->[1], 2 => $its->[2], NUMBER_FD, $number_in, REPORT_FD, $report_in);
    $handles{ +PROCESS_FD } = _process_file($request, defined $terminal);
    my $pid = _run(\@flags, \@words, \%handles, $terminal);
    my $run = $runs{$pid} = { pid => $pid, status => $status_in, number => $number, report => $report, waiting => [] };
    for my $name (qw(number report)) {
        $run->{text}{$name} = "";
        Loop::watch($run->{$name}, sub { _read($run, $name) }, undef);
    }
    return { %$mine, pid => $pid, status => $status };
}

# To the process group of a command; with a terminal also to the group that has it, which the command line knows. That
# cannot pass on a SIGKILL: those who had the terminal learn that it has gone.
sub kill {
    my ($pid, $number, $has_terminal) = @_;
    my $run = $runs{$pid} or return;
    if (!defined $run->{inside}) { push @{ $run->{waiting} }, [$number, $has_terminal]; return }
    CORE::kill($number == Kernel::SIGKILL ? SIGHUP : $number, $pid) if $has_terminal;
    pipe(my $order, my $order_in) or return;
    my $null = Inside::open_file("/dev/null");
    my @words = ("--user=0:0", "--cap=CAP_KILL", $machine, $signaller);
    _run([], \@words, { 0 => $order, 1 => $null, 2 => $null }, undef);
    syswrite($order_in, pack("ll", -$run->{inside}, $number));
    return;
}

# A child of ours has ended: with what status the command did that it was for.
sub fate {
    my ($pid, $status) = @_;
    my $run = $runs{$pid} or return $status;
    for my $name (qw(number report)) { _read($run, $name); _close($run, $name) }
    delete $runs{$pid};
    return $1 if $run->{text}{report} =~ /Exiting with status: (\d+)\s*\z/;
    # Without its kernel a command ends as by force.
    return Kernel::SIGKILL if defined $run->{inside};
    my ($reason) = $run->{text}{report} =~ /FATAL ERROR: (.*)/;
    $reason //= "its runtime ended" . ($status & 127 ? " by signal " . ($status & 127) : "");
    $reason =~ s/^executing processes for container: //;
    syswrite($run->{status}, "0 $reason");
    close $run->{status};
    return $status;
}

sub _read {
    my ($run, $name) = @_;
    my $handle = $run->{$name} or return;
    while (1) {
        my $count = sysread($handle, $run->{text}{$name}, CHUNK_BYTES, length $run->{text}{$name});
        next if !defined $count && $! == EINTR;
        $run->{text}{$name} = substr($run->{text}{$name}, -REPORT_BYTES) if length $run->{text}{$name} > REPORT_BYTES;
        _close($run, $name) if defined $count && $count == 0;
        last if !$count;
    }
    _begun($run) if $name eq "number" && !defined $run->{inside} && length $run->{text}{number};
    return;
}

# The number comes in one write.
sub _begun {
    my ($run) = @_;
    ($run->{inside}) = $run->{text}{number} =~ /^(\d+)/ or return;
    close $run->{status};
    OwnKernel::kill($run->{pid}, @$_) for splice @{ $run->{waiting} };
    return;
}

sub _close {
    my ($run, $name) = @_;
    my $handle = delete $run->{$name} or return;
    Loop::forget($handle);
    close $handle;
    return;
}

# The runtime opens it again, by its path, as root of its user namespace.
sub _pipe_of_runtime {
    pipe(my $read, my $write) or die "$!\n";
    chown($first_id, $first_id, $write) or die "a pipe: $!\n";
    fcntl($read, Kernel::F_SETFL, Kernel::O_NONBLOCK) or die "$!\n";
    return ($read, $write);
}

# A flag that is a path.
sub _descriptor { my ($name, $number) = @_; return "--$name=/proc/self/fd/$number" }

# As the OCI runtime specification has it, in a file without a name.
sub _process_file {
    my ($request, $has_terminal) = @_;
    my @capabilities = $request->{is_root} ? @{ +ROOT_CAPABILITIES } : ();
    my $sets = join ",", map { "\"$_\":" . _json(\@capabilities) } qw(bounding effective permitted);
    my $text = sprintf '{"terminal":%s,"user":{"uid":%d,"gid":%d},"args":%s,"env":%s,"cwd":%s,"capabilities":{%s},%s}',
        $has_terminal ? "true" : "false", @$request{qw(uid gid)}, _json($request->{argv}), _json($request->{env}),
        _json(_folder($request)), $sets, '"noNewPrivileges":true';
    sysopen(my $file, PROCESS_FILE, Kernel::O_RDWR | Kernel::O_CREAT | Kernel::O_TRUNC, 0600) or die "a process file: $!\n";
    unlink PROCESS_FILE;
    chown($first_id, $first_id, $file) or die "a process file: $!\n";
    (syswrite($file, $text) // -1) == length $text or die "a process file: $!\n";
    return $file;
}

# Words are UTF-8 already.
sub _json {
    my ($value) = @_;
    return "[" . join(",", map { _json($_) } @$value) . "]" if ref $value;
    $value =~ s/(["\\])/\\$1/g;
    $value =~ s/([\x00-\x1f])/sprintf '\\u%04x', ord $1/ge;
    return "\"$value\"";
}

# Where it is to be; else at home, else at the root.
sub _folder {
    my ($request) = @_;
    return $request->{cwd} if length $request->{cwd};
    my ($home) = map { m{^HOME=(/.*)}s ? $1 : () } @{ $request->{env} };
    return defined $home && -d ROOT . $home ? $home : "/";
}

# Runs the command line with descriptors of these numbers, in its own session.
sub _run {
    my ($flags, $words, $handles, $terminal) = @_;
    my $pid = fork;
    die "$!\n" if !defined $pid;
    return $pid if $pid;
    my $report = $handles->{ +REPORT_FD };
    eval {
        $SIG{$_} = "DEFAULT" for qw(PIPE CHLD TERM INT HUP);
        Inside::enter(@limits);
        Kernel::setsid() or Inside::give_up("begin a session");
        if ($terminal) { ioctl($terminal, Kernel::TIOCSCTTY, 0) or Inside::give_up("have a terminal") }
        Inside::place(%$handles);
        # From here on it has that number. Perl closes what it opens before a program begins.
        if ($report) {
            open(my $placed, ">&=", REPORT_FD) or Inside::give_up("have a report");
            $report = $placed;
            fcntl($report, Kernel::F_SETFD, 0) or Inside::give_up("have a report");
        }
        my ($program, @first) = @exec;
        Kernel::execve($program, [$program, @$flags, @first, @$words], ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]);
        Inside::give_up("run it");
    };
    my $text = ref $@ ? do { local $! = $@->[0]; "could not $@->[1]: $!" } : $@;
    syswrite($report, "FATAL ERROR: $text\n") if $report;
    Kernel::exit_now(127);
    return;
}

1;
