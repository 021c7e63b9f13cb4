# A command that was started in the machine: its process, its input, its output, how it ended.
package Command;
use strict;
use warnings;
use Errno qw(EAGAIN EINTR);
use Connection;
use Inside;
use Kernel;
use Loop;
use OwnKernel;
use Process;
use Stream;

use constant {
    # Those that have ended, and are remembered.
    REMEMBERED => 1000,
    # Of their output, all together; the oldest goes first.
    REMEMBERED_BYTES => 8 * 1024 * 1024,
    MOST_AT_ONCE     => 512,
    # Input that waits for the command, of each writer.
    INPUT_BYTES => 256 * 1024,
    PIECE_BYTES => 64 * 1024,
    # A terminal hands on what was written to it a little later, so that silence is its end.
    TERMINAL_SILENCE_MS => 50,
    HANG_UP_MS          => 1_000,
};

my (%by_id, %by_pid);
my @ended;    # oldest first
# By their numbers, from 0 on, on both kinds of processors that we know.
my @signals = qw(
    ZERO HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG
    XCPU XFSZ VTALRM PROF WINCH IO PWR SYS
);
my %number_of = map { $signals[$_] => $_ } 1 .. $#signals;

sub find { my ($id) = @_; return $by_id{$id} }

# `%request`: id, is_root, uid, gid (inside), first_id, cwd, argv, env, timeout_ms, size (of a terminal, or
# undef). Its fate is told by `when_begun`.
sub begin {
    my ($class, $creator, %request) = @_;
    my $self = bless {
        id         => $request{id},
        creator    => $creator,
        streams    => {},
        readers    => {},
        inputs     => [],
        waiting    => [],
        state      => "starting",
        timed_out  => 0,
        kill_at    => undef,
        was_read   => 0,
    }, $class;
    if (keys(%by_pid) >= MOST_AT_ONCE) {
        @$self{qw(state failure)} = ("failed", ["unable", "too many commands run in this machine at once"]);
        return $self;
    }
    $by_id{ $self->{id} } = $self;
    eval { $self->_start(\%request); 1 } or $self->_failed("failed", "the command was not started: $@");
    return $self;
}

# Calls the function with nothing when it runs, or has run; else with a code and a sentence.
sub when_begun {
    my ($self, $function) = @_;
    if    ($self->{state} eq "starting") { push @{ $self->{waiting} }, $function }
    elsif ($self->{failure})             { $function->(@{ $self->{failure} }) }
    else                                 { $function->() }
    return;
}

sub _start {
    my ($self, $request) = @_;
    my ($mine, $its) = $request->{size} ? $self->_terminal($request) : ();
    my $process = OwnKernel::is_used() ? OwnKernel::start($request, $its) : Process::start($request, $its);
    my $status = delete $process->{status};
    $mine //= $process;
    @$self{qw(pid input)} = ($process->{pid}, $mine->{input});
    $by_pid{ $self->{pid} } = $self;
    fcntl($self->{input}, Kernel::F_SETFL, Kernel::O_NONBLOCK) or die "$!\n";
    for my $name (grep { $mine->{$_} } qw(stdout stderr)) {
        $self->{streams}{$name} = Stream->new(
            handle    => $mine->{$name},
            on_change => sub { $self->_feed_all },
            slowest   => sub { $self->_slowest($name) },
        );
    }
    $self->{kill_at} = Kernel::now_ms() + $request->{timeout_ms} if $request->{timeout_ms};
    fcntl($status, Kernel::F_SETFL, Kernel::O_NONBLOCK) or die "$!\n";
    Loop::watch($status, sub { $self->_status($status) }, undef);
    return;
}

sub _terminal {
    my ($self, $request) = @_;
    my $first = $request->{first_id};
    # 5 is the group of terminals nearly everywhere.
    my ($master, $slave) = Inside::open_terminal($first + $request->{uid}, $first + 5, $request->{size});
    die "no terminal: $!\n" if !$slave;
    $self->{terminal} = $master;
    open(my $output, "+<&", $master) or die "$!\n";
    return ({ input => $master, stdout => $output }, $slave);
}

sub _status {
    my ($self, $status) = @_;
    my $count = sysread($status, my $text, 4096);
    return if !defined $count && ($! == EAGAIN || $! == EINTR);
    Loop::forget($status);
    close $status;
    if (!$count) {
        # It runs; or was killed before, which its end tells.
        $self->{state} = "running" if $self->{state} eq "starting";
        $_->() for splice @{ $self->{waiting} };
        return;
    }
    my ($errno, $what) = split / /, $text, 2;
    local $! = $errno;
    my $sentence = $errno ? "could not $what: $!" : "could not begin: $what";
    $self->_failed("not_runnable", $sentence);
    return;
}

sub _failed {
    my ($self, $code, $sentence) = @_;
    @$self{qw(state failure)} = ("failed", [$code, $sentence]);
    $self->{kill_at} = undef;
    $self->_end_input;
    $_->close for values %{ $self->{streams} };
    $_->(@{ $self->{failure} }) for splice @{ $self->{waiting} };
    _remember($self) if !$self->{pid};
    return;
}

# A child of ours has ended.
sub reaped {
    my ($pid, $status) = @_;
    my $self = delete $by_pid{$pid} or return;
    @$self{qw(kill_at hang_up_at)} = ();
    if ($self->{state} ne "failed") {
        $self->{exit_code} = $status >> 8 if !($status & 127);
        $self->{signal} = "SIG" . ($signals[ $status & 127 ] // ($status & 127)) if $status & 127;
        $self->{state} = "ended";
        $self->_end_input;
        if ($self->{terminal}) {
            $self->{silent_at}    = Kernel::now_ms() + TERMINAL_SILENCE_MS;
            $self->{silent_since} = $self->{streams}{stdout}->end_offset;
        }
        else { $_->command_ended for values %{ $self->{streams} } }
        $self->_feed_all;
    }
    _remember($self);
    return;
}

sub _remember {
    my ($self) = @_;
    push @ended, $self;
    if (@ended > REMEMBERED) { (shift @ended)->_forget }
    my $bytes = 0;
    for my $command (reverse @ended) {
        for my $stream (values %{ $command->{streams} }) {
            $bytes += length $stream->{bytes};
            $stream->drop if $bytes > REMEMBERED_BYTES && !%{ $command->{readers} };
        }
    }
    return;
}

sub _forget {
    my ($self) = @_;
    delete $by_id{ $self->{id} };
    $_->close for values %{ $self->{streams} };
    $_->{connection}->close for values %{ $self->{readers} };
    return;
}

# What is due of all commands; when there is something again.
sub due {
    my ($now) = @_;
    my $next;
    for my $self (values %by_pid) {
        $self->_time_out       if defined $self->{kill_at}    && $self->{kill_at} <= $now;
        $self->_close_terminal if defined $self->{hang_up_at} && $self->{hang_up_at} <= $now;
        for my $at (grep { defined } @$self{qw(kill_at hang_up_at)}) {
            $next = $at if !defined $next || $at < $next;
        }
    }
    for my $self (@ended) {
        my $at = $self->{silent_at} // next;
        $at = $self->_hang_up($now) if $at <= $now;
        $next = $at if defined $at && (!defined $next || $at < $next);
    }
    return $next;
}

# Of a terminal whose command has ended: when nothing has come out of it for a while, it goes, and those who still have
# it are told so.
sub _hang_up {
    my ($self, $now) = @_;
    my $stream = $self->{streams}{stdout};
    my $end    = $stream->end_offset;
    if (!$stream->{is_done} && (!$stream->{is_watched} || $end != $self->{silent_since})) {
        @$self{qw(silent_at silent_since)} = ($now + TERMINAL_SILENCE_MS, $end);
        return $self->{silent_at};
    }
    delete @$self{qw(silent_at terminal)};
    $stream->end;
    return;
}

sub _time_out {
    my ($self) = @_;
    @$self{qw(timed_out kill_at)} = (1, undef);
    $self->kill("SIGKILL");
    return;
}

# A shell may miss the signal just as it begins to wait for input; it does not miss that its terminal is gone.
sub _close_terminal {
    my ($self) = @_;
    my $terminal = delete $self->{terminal};
    $self->{hang_up_at} = undef;
    $self->_end_input;
    $self->{streams}{stdout}->end;
    CORE::close($terminal);
    return;
}

# To its process group; with a terminal also to the group that has it. After SIGHUP a terminal is closed, if the command
# has not ended by then.
sub kill {
    my ($self, $name) = @_;
    return if !$by_pid{ $self->{pid} // 0 };
    my $number = $number_of{ $name =~ s/^SIG//r } or return;
    $self->{hang_up_at} = Kernel::now_ms() + HANG_UP_MS if $self->{terminal} && $name eq "SIGHUP";
    return OwnKernel::kill($self->{pid}, $number, $self->{terminal}) if OwnKernel::is_used();
    my @groups = ($self->{pid});
    if ($self->{terminal}) {
        my $group = pack("i", 0);
        push @groups, unpack("i", $group) if ioctl($self->{terminal}, Kernel::TIOCGPGRP, $group);
    }
    # Before it has begun a session of its own, it has no group of its own.
    for my $group (grep { $_ > 1 } @groups) { CORE::kill(-$number, $group) }
    CORE::kill($number, $self->{pid}) if $self->{state} eq "starting";
    return;
}

sub resize {
    my ($self, $columns, $rows) = @_;
    return if !$self->{terminal};
    return Inside::set_terminal_size($self->{terminal}, [$columns, $rows]);
}

# Input

# Where its input may be written to without us: our process, the descriptor, and the number of the pipe, for by then the
# descriptor may be another's. Nothing for a terminal.
sub input_pipe {
    my ($self) = @_;
    my $input = $self->{input};
    return !$input || $self->{terminal} ? () : ($$, fileno $input, (stat $input)[1]);
}

# Takes messages of input from this connection: `data` and its bytes, `eof`.
sub take_input {
    my ($self, $connection) = @_;
    return $connection->end if $self->{state} eq "ended" || $self->{state} eq "failed";
    my $writer = { connection => $connection, bytes => "", is_last => 0 };
    push @{ $self->{inputs} }, $writer;
    $connection->{on_message} = sub {
        my (undef, $verb, $bytes) = @_;
        # A terminal has a character for the end, and goes on.
        if    ($verb eq "data")   { $writer->{bytes} .= $bytes }
        elsif ($self->{terminal}) { $writer->{bytes} .= "\x04" }
        else                      { $writer->{is_last} = 1 }
        $self->_write_input;
    };
    # What it sent before it went is still written.
    $connection->{on_close} = sub { $writer->{is_gone} = 1; $self->_write_input };
    return;
}

sub _write_input {
    my ($self) = @_;
    my $blocked = 0;
    for my $writer (@{ $self->{inputs} }) {
        $writer->{bytes} = "" if !$self->{input};
        while (!$blocked && length $writer->{bytes}) {
            my $count = syswrite($self->{input}, $writer->{bytes}, PIECE_BYTES);
            if    (defined $count)                 { substr($writer->{bytes}, 0, $count, "") }
            elsif ($! == EAGAIN || $! == EINTR)    { $blocked = 1 }
            else                                   { $self->_close_input; $writer->{bytes} = "" }
        }
        $self->_close_input if $writer->{is_last} && !length $writer->{bytes};
    }
    @{ $self->{inputs} } = grep { !$_->{is_gone} || length $_->{bytes} } @{ $self->{inputs} };
    for my $writer (grep { !$_->{is_gone} } @{ $self->{inputs} }) {
        $writer->{connection}->set_reading(length($writer->{bytes}) < INPUT_BYTES ? 1 : 0);
    }
    Loop::watch($self->{input}, undef, $blocked ? sub { $self->_write_input } : undef) if $self->{input};
    return;
}

# Nobody will read any more.
sub _end_input {
    my ($self) = @_;
    $self->_close_input;
    $_->{connection}->close for splice @{ $self->{inputs} };
    return;
}

sub _close_input {
    my ($self) = @_;
    my $input = delete $self->{input} or return;
    Loop::forget($input);
    close $input if !$self->{terminal};
    return;
}

# Output

# Answers what the connection is told first, and sends output to it, from these offsets on, and how it ended. One that
# is lent the pipe of standard output gets from us what was in it before, and is told where it is: see Stream.
sub feed {
    my ($self, $connection, $is_lent, %offsets) = @_;
    my $lent = $is_lent && !$self->{terminal} ? $self->{streams}{stdout} : undef;
    my @where = $lent ? $lent->lend : ();
    $connection->send_message("ok", @where);
    if (!$connection->is_open) {
        $lent->take_back if @where;
        return;
    }
    my $reader = { connection => $connection, offsets => \%offsets, is_lent => scalar @where };
    $self->{readers}{"$reader"} = $reader;
    $self->{was_read}      = 1;
    $connection->{on_room} = sub { $self->_feed($reader) };
    $connection->{on_close} = sub {
        delete $self->{readers}{"$reader"};
        $lent->take_back if $reader->{is_lent};
        $_->watch for values %{ $self->{streams} };
    };
    $self->_feed($reader);
    return;
}

# The one who asked for the command is gone: it is not to wait for him to read.
sub creator_gone {
    my ($connection) = @_;
    for my $self (values %by_id) {
        next if !defined $self->{creator} || $self->{creator} != $connection;
        $self->{creator} = undef;
        $_->watch for values %{ $self->{streams} };
    }
    return;
}

# Whoever asked for it is about to read from the beginning.
sub _slowest {
    my ($self, $name) = @_;
    my @had = sort { $a <=> $b } map { $_->{offsets}{$name} } values %{ $self->{readers} };
    return $had[0] if @had;
    return defined $self->{creator} && !$self->{was_read} ? 0 : undef;
}

sub _feed_all { my ($self) = @_; $self->_feed($_) for values %{ $self->{readers} }; return }

sub _feed {
    my ($self, $reader) = @_;
    my $connection = $reader->{connection};
    return if $reader->{is_fed};
    my $is_done = $self->{state} eq "ended" || $self->{state} eq "failed";
    for my $name (sort { $b cmp $a } keys %{ $self->{streams} }) {
        my $stream = $self->{streams}{$name};
        while (!$connection->is_full && $connection->is_open) {
            my $had = $reader->{offsets}{$name};
            if ($had < $stream->{start}) {
                $connection->send_message("skipped", $name, $stream->{start} - $had);
                $reader->{offsets}{$name} = $stream->{start};
                next;
            }
            my $piece = $had < $stream->end_offset ? $stream->piece($had, PIECE_BYTES) : "";
            last if !length $piece;
            $reader->{offsets}{$name} += length $piece;
            $connection->send_message("output", $name, $piece);
        }
        # Of what was lent, something may come back.
        $is_done &&= $reader->{is_lent} || !$stream->{lent};
        $is_done &&= $stream->{is_done} && $reader->{offsets}{$name} >= $stream->end_offset;
        $stream->watch;
    }
    return if !$is_done || !$connection->is_open;
    $reader->{is_fed} = 1;
    $connection->send_message("exit", $self->{exit_code} // "", $self->{signal} // "", $self->{timed_out});
    # One that is lent the pipe takes the rest from it, and goes.
    $connection->end if !$reader->{is_lent};
    return;
}

1;
