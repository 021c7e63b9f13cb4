# The machine's console: the first process's two streams, in lines. The newest are kept until somebody listens.
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
};

my @lines;    # [stream, text]
my $listener;

# `$handle`: a pipe.
sub take {
    my ($stream, $handle) = @_;
    fcntl($handle, Kernel::F_SETFL, Kernel::O_NONBLOCK) or die "the console: $!\n";
    my $rest = "";
    Loop::watch($handle, sub {
        my $count = sysread($handle, $rest, CHUNK_BYTES, length $rest);
        return if !defined $count && ($! == EAGAIN || $! == EINTR);
        while ($rest =~ s/\A([^\n]{0,${\LINE_BYTES}})\n// || $rest =~ s/\A([^\n]{${\LINE_BYTES}})//) {
            _add($stream, $1);
        }
        if (!$count) {
            _add($stream, $rest) if length $rest;
            Loop::forget($handle);
            close $handle;
        }
        _send();
    }, undef);
    return;
}

# The newest who asks gets the lines, from the oldest that is kept on.
sub listen_by {
    my ($connection) = @_;
    $listener = $connection;
    $connection->{on_room} = \&_send;
    _send();
    return;
}

sub gone { my ($connection) = @_; undef $listener if $listener && $listener == $connection; return }

# For people: what the first process complained about.
sub newest { my ($count) = @_; return join "\n", map { $_->[1] } @lines > $count ? @lines[-$count .. -1] : @lines }

sub _add {
    push @lines, [@_];
    shift @lines if @lines > LINES;
    return;
}

sub _send {
    while (@lines && $listener && $listener->is_open && !$listener->is_full) {
        my ($stream, $text) = @{ shift @lines };
        $listener->send_message("line", $stream, $text);
    }
    return;
}

1;
