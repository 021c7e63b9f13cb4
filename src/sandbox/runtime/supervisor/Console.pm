# The machine's console: the first process's two streams, in lines. Programs that write faster than lines are taken wait
# for their pipe; while nobody listens the newest are kept, and how many were not.
package Console;
use strict;
use warnings;
use Errno qw(EAGAIN EINTR);
use Kernel;
use Loop;

use constant {
    LINE_BYTES  => 16 * 1024,
    LINES       => 1000,
    CHUNK_BYTES => 64 * 1024,
    # What is taken in a second; beside it, as much at once of a console that was quiet. A line counts as many bytes as
    # its way to the node costs: neither this process nor the node's has more to do for one sandbox, whatever it writes.
    BYTES_PER_SECOND => 2 * 1024 * 1024,
    BYTES_OF_A_LINE  => 500,
    RETRY_MS         => 50,
};

my @lines;    # [stream, text]
my $lost = 0; # Lines that were not kept.
my @sources;
my ($allowance, $refilled_ms) = (BYTES_PER_SECOND, undef);
my $listener;

# `$handle`: a pipe.
sub take {
    my ($stream, $handle) = @_;
    fcntl($handle, Kernel::F_SETFL, Kernel::O_NONBLOCK) or die "the console: $!\n";
    my $source = { stream => $stream, handle => $handle, rest => "", waits => 0 };
    Loop::when_due(\&_due) if !@sources;
    push @sources, $source;
    Loop::watch($handle, sub { _read($source) }, undef);
    return;
}

# The newest who asks gets the lines, from the oldest that is kept on.
sub listen_by {
    my ($connection) = @_;
    $listener = $connection;
    $connection->{on_room} = sub { _send(); _go_on(); return };
    _send();
    return;
}

sub gone { my ($connection) = @_; undef $listener if $listener && $listener == $connection; return }

# For people: what the first process complained about.
sub newest { my ($count) = @_; return join "\n", map { $_->[1] } @lines > $count ? @lines[-$count .. -1] : @lines }

sub _read {
    my ($source) = @_;
    my $count = sysread($source->{handle}, $source->{rest}, CHUNK_BYTES, length $source->{rest});
    return if !defined $count && ($! == EAGAIN || $! == EINTR);
    $source->{ended} = 1 if !$count;
    _cut($source);
    return;
}

# Takes what may be taken; what may not waits here, and who writes it at the pipe.
sub _cut {
    my ($source) = @_;
    my $is_held = 0;
    _refill();
    while ($source->{rest} =~ /\A([^\n]{0,${\LINE_BYTES}})\n/ || $source->{rest} =~ /\A([^\n]{${\LINE_BYTES}})/) {
        ($is_held = 1, last) if !_has_room();
        # With the end of the line, where it has one.
        my $line = $1;
        substr($source->{rest}, 0, $+[0], "");
        _add($source->{stream}, $line);
    }
    if ($source->{ended} && !$is_held) {
        _add($source->{stream}, $source->{rest}) if length $source->{rest};
        @sources = grep { $_ != $source } @sources;
        Loop::forget($source->{handle});
        close $source->{handle};
    }
    elsif ($is_held != $source->{waits}) {
        $source->{waits} = $is_held;
        Loop::watch($source->{handle}, $is_held ? undef : sub { _read($source) }, undef);
    }
    _send();
    return;
}

# Whether another line may be taken. Without a listener it takes the place of the oldest.
sub _has_room {
    return 0 if $allowance <= 0;
    _send() if @lines >= LINES;
    return @lines < LINES || !$listener || !$listener->is_open;
}

sub _refill {
    my $now = Kernel::now_ms();
    $allowance += ($now - ($refilled_ms // $now)) * BYTES_PER_SECOND / 1000;
    $allowance = BYTES_PER_SECOND if $allowance > BYTES_PER_SECOND;
    $refilled_ms = $now;
    return;
}

sub _go_on { for my $source (@sources) { _cut($source) if $source->{waits} } return }

sub _due {
    my ($now) = @_;
    _go_on();
    return (grep { $_->{waits} } @sources) ? $now + RETRY_MS : undef;
}

sub _add {
    $allowance -= BYTES_OF_A_LINE + length $_[1];
    push @lines, [@_];
    if (@lines > LINES) { shift @lines; $lost++ }
    return;
}

sub _send {
    while ($listener && $listener->is_open && !$listener->is_full) {
        if ($lost) {
            $listener->send_message("lost", "lines", $lost);
            $lost = 0;
        }
        my $next = shift @lines or last;
        $listener->send_message("line", @$next);
    }
    return;
}

1;
