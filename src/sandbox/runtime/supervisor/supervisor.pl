#!/usr/bin/perl
# The supervisor of one machine: supervisor.pl FOLDER NODE_PID
#
# A sandbox must outlive the node process that made it: commands go on, their output is kept, and when the node does not
# come back the machine must stand still and then die, by itself. So a process of its own holds each machine. It is in
# Perl because that is on every Debian system (`perl-base`), needs a few MB, and has one thread: only such a process can
# enter another's namespaces and fork. Nothing of ours is in the machine's image but the first process, which sleeps.
#
# It starts the first process (FirstProcess.pm), holds the machine's namespaces (Inside.pm), starts commands in them
# (Command.pm, Process.pm, Stream.pm; OwnKernel.pm where they cannot be entered), passes connections in and out
# (Relay.pm), reads the console (Console.pm), and obeys nodes and the clock (Machine.pm). It is root on the host. It
# reads nothing that comes out of the machine but bytes to pass on.
# A process that enters the machine is not dumpable until it has become what the machine's commands are, so that nothing
# inside can look into it, and it has no descriptors but the command's three.
#
# The folder is its working directory; everything in it is named relatively, so that it may be renamed. In it:
#   supervisor.conf   what to do, one word and its values on a line; %XX for what would not fit in a word
#   supervisor.sock   where nodes connect, only root may; see Connection.pm for messages
#   supervisor.pid    its own number
#   ended             after the end: the cause (stopped, deadline, lease, died), and the reason on the next line
# Descriptor 3 is a pipe of the node's: `ready PID`, or `failed` and a reason, is written to it. Until then the
# supervisor dies with the node; from then on it lives without.
#
# A connection begins with one message, which says what it is for:
#   output ID STDOUT STDERR IS_LENT
#                             answered by `ok [PID DESCRIPTOR INODE TAKEN]` or unknown; then `output STREAM BYTES`,
#                             `skipped STREAM COUNT`, and at the end `exit CODE SIGNAL TIMED_OUT`; the numbers are the
#                             bytes that the reader has had. A reader that is lent our end of the pipe of standard
#                             output takes from it himself what comes after the TAKEN first bytes, until he goes
#   input ID                  answered by `ok [PID DESCRIPTOR INODE]`, of our end of the command's pipe, or unknown; then
#                             the node sends `data BYTES` and `eof`
#   connect PORT              answered by ok or `error REASON`; then it is the connection, without messages
# anything else is a request `VERB NUMBER ...`, as are all that follow, answered by `ok NUMBER ...` or
# `error NUMBER CODE REASON`, in any order:
#   hello                     ok NUMBER INIT_PID IS_PAUSED [CAUSE REASON]
#   exec ID USER CWD TIMEOUT_MS COLUMNS ROWS ARGUMENT_COUNT ARGUMENT... ENV...
#                             ok once it runs; COLUMNS is 0 where there is no terminal
#   find ID                   ok NUMBER IS_KNOWN
#   kill ID SIGNAL, resize ID COLUMNS ROWS
#   console                   from now on `line STREAM TEXT` comes on this connection, and `lost lines COUNT` where some
#                             were not kept
#   pause, resume, renew MS   ok once it stands still, or runs
#   deadline MS, hostname NAME, network PORT
#   stop                      everything is killed; `ended CAUSE REASON` comes on all these connections
use strict;
use warnings;
use Errno qw(EAGAIN);

BEGIN { unshift @INC, $0 =~ m{^(.*)/} ? $1 : "." }
use Kernel;
use Loop;
use Machine;

use constant {
    READY_NUMBER => 3,
    SOCKET       => "supervisor.sock",
    WAIT_NO_HANG => 1,
    OPEN_FILES   => 65_536,
};

my ($folder, $node) = @ARGV;
defined $node or die "usage: supervisor.pl FOLDER NODE_PID\n";
Kernel::prctl(Kernel::PR_SET_PDEATHSIG, Kernel::SIGKILL) or die "to be bound to the node: $!\n";
getppid() == $node or die "the node has gone\n";
chdir $folder   or die "$folder: $!\n";
umask 077;
open(my $ready, ">&=", READY_NUMBER) or die "nobody waits for me on descriptor 3: $!\n";
fcntl($ready, Kernel::F_SETFD, Kernel::FD_CLOEXEC) or die "$!\n";
Kernel::close_from(READY_NUMBER + 1);

my $pid = eval { prepare(); Machine::start(read_configuration("supervisor.conf")) };
my $reason = $@;
my $listener = defined $pid ? eval { listen_for_nodes() } : undef;
if (!$listener) {
    $reason = $@ if defined $pid;
    chomp $reason;
    syswrite($ready, "failed $reason");
    kill KILL => $pid if defined $pid;
    exit 1;
}
Kernel::prctl(Kernel::PR_SET_PDEATHSIG, 0) or die "to live without the node: $!\n";
syswrite($ready, "ready $pid");
close $ready;
Loop::run();
unlink SOCKET, "supervisor.pid";
exit 0;

sub prepare {
    Inside::write_file("supervisor.pid", "$$") or die "supervisor.pid: $!\n";
    # Nothing that enters the machine may be looked into from there; see above.
    Kernel::prctl(Kernel::PR_SET_DUMPABLE, 0) or die "not to be dumped: $!\n";
    # What the machine's launcher leaves behind becomes ours, and its commands do.
    Kernel::prctl(Kernel::PR_SET_CHILD_SUBREAPER, 1) or die "to be a reaper: $!\n";
    Kernel::leave_keyring();
    Kernel::limit(Kernel::RLIMIT_NOFILE, OPEN_FILES) or die "open files: $!\n";
    # When memory is short the commands go first; where even root may not ask for that, all are equal.
    Inside::write_file("/proc/self/oom_score_adj", "-500");
    $SIG{PIPE} = "IGNORE";
    $SIG{$_} = "IGNORE" for qw(HUP INT);
    # A signal becomes a byte, so that none comes between a look and a wait.
    pipe(my $wakes, my $woken) or die "$!\n";
    fcntl($_, Kernel::F_SETFL, Kernel::O_NONBLOCK) or die "$!\n" for $wakes, $woken;
    $SIG{CHLD} = sub { syswrite($woken, ".") };
    Loop::watch($wakes, sub { sysread($wakes, my $bytes, 4096); reap() }, undef);
    return;
}

sub reap {
    while ((my $child = waitpid(-1, WAIT_NO_HANG)) > 0) { Machine::reaped($child, $?) }
    return;
}

sub listen_for_nodes {
    unlink SOCKET;
    socket(my $socket, Kernel::AF_UNIX, Kernel::SOCK_STREAM, 0) or die "a socket: $!\n";
    bind($socket, Kernel::unix_address(SOCKET)) or die "@{[SOCKET]}: $!\n";
    listen($socket, Kernel::BACKLOG) or die "@{[SOCKET]}: $!\n";
    fcntl($socket, Kernel::F_SETFL, Kernel::O_NONBLOCK) or die "$!\n";
    Loop::watch($socket, sub { take($socket) }, undef);
    return $socket;
}

sub take {
    my ($socket) = @_;
    accept(my $connection, $socket) or return;
    fcntl($connection, Kernel::F_SETFL, Kernel::O_NONBLOCK) or return;
    Machine::take_connection($connection);
    return;
}

# Names that may come several times have lists.
sub read_configuration {
    my ($file) = @_;
    my %config = (join => [], passed => [], staged => [], copied => [], user_limit => []);
    my @freezer = qw(file freeze_word thaw_word state_file frozen_line);
    for my $line (split /\n/, Inside::read_file($file)) {
        my ($name, @values) = map { s/%([0-9A-F]{2})/chr hex $1/ger } split / /, $line;
        if    ($name eq "join")    { push @{ $config{join} }, @values }
        elsif ($name =~ /^(passed|staged|copied|user_limit)$/) { push @{ $config{$name} }, \@values }
        elsif ($name =~ /^(launch|exec|kernel)$/) { $config{$name} = \@values }
        elsif ($name eq "freezer") { @{ $config{freezer} }{@freezer} = @values }
        else                       { $config{$name} = $values[0] }
    }
    return \%config;
}
