# The loop: what is to be read, what can be written, and what is due. One thread, no call that blocks.
package Loop;
use strict;
use warnings;
use Errno qw(EINTR);
use Kernel;

# By descriptor: [handle, on readable, on writable].
my %watched;
my ($read_bits, $write_bits) = ("", "");
# Functions that do what is due, and say when they next want to be called (ms of Kernel::now_ms, or undef).
my @due;
my $stopped = 0;

# Either function may be undef: not now.
sub watch {
    my ($handle, $on_readable, $on_writable) = @_;
    my $number = fileno $handle;
    $watched{$number} = [$handle, $on_readable, $on_writable];
    vec($read_bits,  $number, 1) = $on_readable ? 1 : 0;
    vec($write_bits, $number, 1) = $on_writable ? 1 : 0;
    return;
}

# Must come before the handle is closed.
sub forget {
    my ($handle) = @_;
    my $number = fileno $handle;
    return if !defined $number;
    delete $watched{$number};
    vec($read_bits,  $number, 1) = 0;
    vec($write_bits, $number, 1) = 0;
    return;
}

sub when_due { push @due, @_; return }
sub stop { $stopped = 1; return }

sub run {
    until ($stopped) {
        my $now  = Kernel::now_ms();
        my $next = $now + 60_000;
        for my $function (@due) {
            my $at = $function->($now);
            $next = $at if defined $at && $at < $next;
        }
        last if $stopped;
        my $wait = $next - Kernel::now_ms();
        $wait = 0 if $wait < 0;
        my $count = select(my $readable = $read_bits, my $writable = $write_bits, undef, $wait / 1000);
        if ($count < 0) {
            die "select: $!\n" unless $! == EINTR;
            next;
        }
        next if $count == 0;
        for my $number (keys %watched) {
            # An earlier one may have ended this one, and another may have its number.
            my $entry = $watched{$number} or next;
            if (vec($readable, $number, 1) && $entry->[1]) { $entry->[1]->() }
            my $now_there = $watched{$number} or next;
            next unless $now_there->[0] == $entry->[0];
            if (vec($writable, $number, 1) && $now_there->[2]) { $now_there->[2]->() }
        }
    }
    return;
}

1;
