# The machine as a whole: its first process, its freezer, its lease and its deadline; and what nodes ask of it.
#
# It stands still while the node wants that (paused) or while its lease has run out, and dies when the grace after that
# or the deadline has passed. Its end is written to the file `ended`: the cause, and below it the reason.
package Machine;
use strict;
use warnings;
use Command;
use Connection;
use Console;
use FirstProcess;
use Inside;
use Kernel;
use Loop;
use OwnKernel;
use Process;
use Relay;

use constant {
    FREEZE_MS     => 10_000,
    FREEZE_STEP_MS => 1,
    # How long it stays after the end, while nobody asks for anything.
    LINGER_MS     => 60_000,
    # How often a kill is repeated, for those that were born meanwhile.
    KILL_STEP_MS  => 20,
    EGRESS_SOCKET => "egress.sock",
};

my $config;
my $init;
my %nodes;             # connections that ask
my $connections = 0;
my ($is_paused, $lease_ended) = (0, 0);
my @settling;          # [function, wanted state, until]
my ($lease_at, $deadline_at, $kill_at, $linger_at);
# Why it is being killed; why it has ended.
my ($cause, $ended);

sub start {
    ($config) = @_;
    Inside::prepare($config->{filter_file});
    $init = FirstProcess::start($config);
    $config->{kernel} ? OwnKernel::prepare($config, $init) : Inside::hold($init);
    if ($config->{terminals}) { Inside::limit_terminals($config->{terminals}) or die "limit terminals: $!\n" }
    Inside::raise_loopback() or die "loopback: $!\n";
    _renew($config->{lease_ms});
    _set_deadline(sub { }, undef, $config->{deadline_ms});
    Process::prepare(@$config{qw(join open_files message_bytes)}) if !$config->{kernel};
    Loop::when_due(\&_due, \&Command::due, \&Process::due);
    return $init;
}

# What nodes ask: the number of a request comes back with its answer, `ok` and fields, or `error`, a code and a
# sentence.
my %requests = (
    hello    => sub { my ($answer) = @_; $answer->(ok => $init, $is_paused, $ended ? @$ended : ()) },
    exec     => \&_exec,
    find     => sub { my ($answer, undef, $id) = @_; $answer->(ok => Command::find($id) ? 1 : 0) },
    kill     => sub { my ($answer, undef, $id, $signal) = @_; _of_command($answer, $id, sub { $_[0]->kill($signal) }) },
    resize   => sub { my ($answer, undef, $id, @size) = @_; _of_command($answer, $id, sub { $_[0]->resize(@size) }) },
    console  => sub { my ($answer, $connection) = @_; $answer->("ok"); Console::listen_by($connection) },
    pause    => sub { my ($answer) = @_; $is_paused = 1; _settle($answer) },
    resume   => sub { my ($answer) = @_; $is_paused = 0; _settle($answer) },
    renew    => sub { my ($answer, undef, $ms) = @_; _renew($ms); _settle($answer) },
    deadline => \&_set_deadline,
    hostname => sub { my ($answer, undef, $name) = @_; _done($answer, Inside::set_hostname($name)) },
    network  => sub { my ($answer, undef, $port) = @_; _done($answer, Relay::listen_inside($port, EGRESS_SOCKET)) },
    stop     => sub { my ($answer) = @_; $answer->("ok"); _kill("stopped") },
);

# What a connection is for when it is not for requests; each begins with one message, which is answered.
my %uses = (
    output  => \&_output,
    input   => \&_input,
    connect => \&_connect,
);

sub take_connection {
    my ($handle) = @_;
    $connections++;
    Connection->new(handle => $handle, on_message => \&_first_message, on_gone => sub { $connections-- });
    return;
}

sub _first_message {
    my ($connection, $verb, @fields) = @_;
    if (my $use = $uses{$verb}) {
        # What follows is not for us, and waits.
        return $use->($connection, @fields);
    }
    $nodes{"$connection"} = $connection;
    $connection->{on_message} = \&_request;
    $connection->{on_close} = sub {
        delete $nodes{"$connection"};
        Console::gone($connection);
        Command::creator_gone($connection);
    };
    _request($connection, $verb, @fields);
    return;
}

sub _request {
    my ($connection, $verb, $number, @fields) = @_;
    my $answer = sub {
        my ($kind, @rest) = @_;
        $connection->send_message($kind, $number, @rest);
    };
    my $request = $requests{$verb} or return $answer->(error => "failed", "there is no request $verb");
    if (!Inside::is_held() && $verb !~ /^(hello|find|kill|resize|console|stop)$/) {
        return $answer->(error => "not_running", "the machine has ended");
    }
    $request->($answer, $connection, @fields);
    return;
}

# From now on; 0: never.
sub _set_deadline {
    my ($answer, undef, $ms) = @_;
    $deadline_at = $ms ? Kernel::now_ms() + $ms : undef;
    return $answer->("ok");
}

sub _done {
    my ($answer, $is_done) = @_;
    return $is_done ? $answer->("ok") : $answer->(error => "failed", "$!");
}

sub _of_command {
    my ($answer, $id, $function) = @_;
    my $command = Command::find($id) or return $answer->(error => "unknown", "no command $id is known");
    $function->($command);
    return $answer->("ok");
}

# A repeated request finds the command that it made.
sub _exec {
    my ($answer, $connection, $id, $user, $cwd, $timeout_ms, $columns, $rows, $argument_count, @words) = @_;
    my $is_root = $user eq "root";
    my $command = Command::find($id) // Command->begin(
        $connection,
        id         => $id,
        is_root    => $is_root,
        uid        => $is_root ? 0 : $config->{agent_uid},
        gid        => $is_root ? 0 : $config->{agent_gid},
        first_id   => $config->{first_id},
        cwd        => $cwd,
        timeout_ms => $timeout_ms,
        size       => $columns ? [$columns, $rows] : undef,
        argv       => [@words[0 .. $argument_count - 1]],
        env        => [@words[$argument_count .. $#words]],
    );
    $command->when_begun(sub { return @_ ? $answer->(error => @_) : $answer->("ok") });
    return;
}

sub _output {
    my ($connection, $id, $stdout, $stderr, $is_lent) = @_;
    my $command = Command::find($id);
    if (!$command) {
        $connection->send_message("unknown");
        return $connection->end;
    }
    $connection->{on_message} = sub { };
    $command->feed($connection, $is_lent, stdout => $stdout, stderr => $stderr);
    return;
}

sub _input {
    my ($connection, $id) = @_;
    my $command = Command::find($id);
    $connection->send_message($command ? ("ok", $command->input_pipe) : "unknown");
    return $connection->end if !$command;
    $command->take_input($connection);
    return;
}

sub _connect {
    my ($connection, $port) = @_;
    $connection->set_reading(0);
    if (!Inside::is_held()) { $connection->send_message("error", "the machine has ended"); return $connection->end }
    Relay::connect_inside($port, sub {
        my ($handle, $reason) = @_;
        return if !$connection->is_open;
        if (!$handle) { $connection->send_message("error", $reason); return $connection->end }
        $connection->send_message("ok");
        my ($node, $first) = $connection->detach;
        Relay::join_up($node, $handle, $first);
    });
    return;
}

# Freezer

sub _renew {
    my ($ms) = @_;
    $lease_at = Kernel::now_ms() + $ms;
    return if !$lease_ended;
    $lease_ended = 0;
    undef $kill_at if !defined $cause;
    return;
}

# Writes what the freezer is to be, and answers when it is that.
sub _settle {
    my ($answer) = @_;
    my $freezer = $config->{freezer};
    my $still = $is_paused || $lease_ended ? 1 : 0;
    return $answer->($still ? (error => "unable", "there is no freezer on this computer") : "ok") if !$freezer;
    return $answer->("ok") if _stands_still() == $still;
    _write_freezer($still) or return $answer->(error => "failed", "the freezer: $!");
    return $answer->("ok") if !$still || _stands_still();
    push @settling, [$answer, Kernel::now_ms() + FREEZE_MS];
    return;
}

sub _write_freezer {
    my ($still) = @_;
    my $freezer = $config->{freezer} or return 0;
    return Inside::write_file($freezer->{file}, $still ? $freezer->{freeze_word} : $freezer->{thaw_word});
}

sub _stands_still {
    my $freezer = $config->{freezer};
    my $text = eval { Inside::read_file($freezer->{state_file}) } // "";
    return $text =~ /^\Q$freezer->{frozen_line}\E$/m ? 1 : 0;
}

# Time

sub _due {
    my ($now) = @_;
    _settled($now) if @settling;
    if (!$ended) {
        _lose_lease($now) if !$lease_ended && $now >= $lease_at;
        _kill("deadline") if defined $deadline_at && $now >= $deadline_at && !defined $cause;
        if (defined $kill_at && $now >= $kill_at) { _kill($cause // "lease") }
    }
    elsif ($connections == 0) {
        $linger_at //= $now + LINGER_MS;
        Loop::stop() if $now >= $linger_at;
    }
    else { undef $linger_at }
    my @times = grep { defined } $ended ? $linger_at : ($lease_ended ? undef : $lease_at, $deadline_at, $kill_at);
    push @times, $now + FREEZE_STEP_MS if @settling;
    my ($next) = sort { $a <=> $b } @times;
    return $next;
}

sub _settled {
    my ($now) = @_;
    my $is_wanted = $is_paused || $lease_ended;
    my $is_still  = _stands_still();
    @settling = grep {
        my ($answer, $until) = @$_;
        if    (!$is_wanted || $is_still) { $answer->("ok") }
        elsif ($now >= $until)           { $answer->(error => "failed", "its processes did not stand still in time") }
        $is_wanted && !$is_still && $now < $until;
    } @settling;
    return;
}

sub _lose_lease {
    my ($now) = @_;
    $lease_ended = 1;
    $kill_at     = $now + $config->{grace_ms} if !defined $cause;
    _write_freezer(1);
    return;
}

# The first process takes all others of its pid namespace with it. A frozen process of version 1 must be thawed to die.
sub _kill {
    my ($why) = @_;
    return if $ended;
    $cause //= $why;
    undef $deadline_at;
    kill KILL => $init;
    _kill_group();
    _write_freezer(0) if !$config->{kill_file};
    $kill_at = Kernel::now_ms() + KILL_STEP_MS;
    return;
}

sub _kill_group {
    return Inside::write_file($config->{kill_file}, "1") if $config->{kill_file};
    my ($file) = @{ $config->{join} } or return;
    my @pids = split /\n/, eval { Inside::read_file($file) } // "";
    kill KILL => @pids if @pids;
    return;
}

# A child of ours has ended.
sub reaped {
    my ($pid, $status) = @_;
    Command::reaped($pid, OwnKernel::fate($pid, $status));
    Process::reaped($pid);
    return if $pid != $init || $ended;
    _kill_group();
    _write_freezer(0);
    my $how = $status & 127 ? "by signal " . ($status & 127) : "with code " . ($status >> 8);
    $ended = [$cause // "died", defined $cause ? "" : "its first process ended $how"];
    Relay::close_all();
    Inside::release();
    undef $_ for $lease_at, $deadline_at, $kill_at;
    Inside::write_file("ended.new", join "\n", @$ended) && rename("ended.new", "ended") or warn "ended: $!\n";
    $_->send_message("ended", @$ended) for values %nodes;
    $_->[0]->(error => "not_running", "the machine has ended") for splice @settling;
    return;
}

1;
