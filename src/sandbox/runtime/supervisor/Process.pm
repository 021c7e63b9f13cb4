# How the process of a command begins: it joins the machine's cgroups and namespaces, and becomes the program.
#
# Who joins a cgroup waits until every processor has passed through the scheduler: 6 to 25 ms on an idle computer, while
# all the rest takes 2. Nobody is to wait for that, so a spare process has done it already: it is in the machine's
# namespaces and its cgroups, has pipes for a command, and waits to be told which. It takes about 0.5 MB. Without one (it
# is still to come, the command has a terminal, or is too large for a pipe) a process is made when it is needed.
package Process;
use strict;
use warnings;
use Errno qw(EINTR ENOENT EACCES ENOTDIR);
use Inside;
use Kernel;

use constant {
    # Later than the command that took the last one needs to begin.
    SPARE_AFTER_MS => 10,
    # What a pipe takes at once, whoever reads it.
    ORDER_BYTES => 60_000,
    # As `ps` shows it in the machine.
    SPARE_NAME => "waiting for a command",
};

# Files of the machine's cgroups, how many files a process may have open, and bytes of its message queues.
my @limits;
# What `start` returns, and `order`, to which the command is written; when the next one is made.
my ($spare, $spare_at);

sub prepare {
    @limits = @_;
    $spare_at = Kernel::now_ms() + SPARE_AFTER_MS;
    return;
}

# `$request`: is_root, uid, gid (inside), cwd, argv, env. `$terminal` is its side of one, or undef. Returns
# its `pid`; without a terminal our ends of its streams: `input`, `stdout`, `stderr`; and `status`, which ends when it
# runs the program, or has an errno and what could not be done. Dies with a reason.
sub start {
    my ($request, $terminal) = @_;
    $spare_at = Kernel::now_ms() + SPARE_AFTER_MS;
    return (!$terminal && _by_spare($request)) || _fork($terminal, sub {
        my ($its) = @_;
        Inside::enter(@limits);
        _become($request, $its, $terminal);
    });
}

# When a spare is due; makes it.
sub due {
    my ($now) = @_;
    return if $spare || !defined $spare_at || !Inside::is_held();
    return $spare_at if $spare_at > $now;
    undef $spare_at;
    # Without one the next command takes longer, and tries again.
    eval { _make_spare(); 1 } or warn "a spare process: $@";
    return;
}

# A child of ours has ended.
sub reaped { my ($pid) = @_; undef $spare if $spare && $spare->{pid} == $pid; return }

sub _make_spare {
    pipe(my $order, my $order_in) or die "$!\n";
    fcntl($order_in, Kernel::F_SETFL, Kernel::O_NONBLOCK) or die "$!\n";
    my $process = _fork(undef, sub { _wait($order, @_) });
    $spare = { %$process, order => $order_in };
    return;
}

# In the child. What the supervisor has open would not close for others while this one has it too.
sub _wait {
    my ($order, $its, $status_in) = @_;
    Kernel::close_all_but(0 .. 2, map { fileno $_ } $order, @$its, $status_in, Inside::handles());
    $0 = SPARE_NAME;
    Inside::enter(@limits);
    my $bytes = "";
    while (1) {
        my $count = sysread($order, $bytes, 65536, length $bytes);
        next if !defined $count && $! == EINTR;
        last if !$count;
    }
    # The supervisor has gone.
    Kernel::exit_now(0) if !length $bytes;
    my %request;
    (@request{qw(is_root uid gid cwd)}, my ($argument_count, @words)) = unpack("(N/a*)*", $bytes);
    $request{argv} = [@words[0 .. $argument_count - 1]];
    $request{env}  = [@words[$argument_count .. $#words]];
    _become(\%request, $its, undef);
    return;
}

# Undef where there is none that can do it.
sub _by_spare {
    my ($request) = @_;
    return if !$spare;
    my @words = (@$request{qw(is_root uid gid cwd)}, scalar @{ $request->{argv} });
    my $bytes = pack("(N/a*)*", map { $_ // "" } @words, @{ $request->{argv} }, @{ $request->{env} });
    return if length $bytes > ORDER_BYTES;
    my $process = $spare;
    undef $spare;
    my $count = syswrite(delete $process->{order}, $bytes);
    return $process if defined $count && $count == length $bytes;
    kill KILL => $process->{pid};
    return;
}

sub _fork {
    my ($terminal, $function) = @_;
    my ($mine, $its) = $terminal ? ({}, [($terminal) x 3]) : pipes();
    pipe(my $status, my $status_in) or die "$!\n";
    my $pid = Inside::fork_into();
    die "$!\n" if !defined $pid;
    if ($pid == 0) {
        eval { $function->($its, $status_in) };
        my $error = ref $@ ? $@ : [0, "$@"];
        syswrite($status_in, join(" ", @$error));
        Kernel::exit_now(127);
    }
    return { %$mine, pid => $pid, status => $status };
}

sub pipes {
    pipe(my $in_read,  my $in_write)  or die "$!\n";
    pipe(my $out_read, my $out_write) or die "$!\n";
    pipe(my $err_read, my $err_write) or die "$!\n";
    return ({ input => $in_write, stdout => $out_read, stderr => $err_read }, [$in_read, $out_write, $err_write]);
}

# In the child. Does not return.
sub _become {
    my ($request, $its, $terminal) = @_;
    $SIG{$_} = "DEFAULT" for qw(PIPE CHLD TERM INT HUP);
    Kernel::setsid() or Inside::give_up("begin a session");
    if ($terminal) {
        ioctl($terminal, Kernel::TIOCSCTTY, 0) or Inside::give_up("have a terminal");
    }
    Inside::become(@$request{qw(is_root uid gid)});
    for my $number (0 .. 2) {
        Kernel::dup3(fileno($its->[$number]), $number) or Inside::give_up("have its streams");
    }
    # Everything else is closed when the program begins: Perl marks all descriptors above 2 so.
    _enter_folder($request);
    Inside::filter() or Inside::give_up("filter system calls");
    _run($request->{argv}, $request->{env});
    return;
}

# Where it is to be; else at home, else at the root.
sub _enter_folder {
    my ($request) = @_;
    if (length $request->{cwd}) {
        chdir $request->{cwd} or die [$! + 0, "enter the folder $request->{cwd}"];
        return;
    }
    my ($home) = map { /^HOME=(.+)/s ? $1 : () } @{ $request->{env} };
    (defined $home && chdir $home) || chdir "/" || Inside::give_up("enter the root folder");
    return;
}

sub _run {
    my ($argv, $env) = @_;
    my $name = $argv->[0];
    die [ENOENT, "run a program without a name"] if !length $name;
    my ($path) = map { /^PATH=(.*)/s ? $1 : () } @$env;
    my @folders = map { length $_ ? $_ : "." } split /:/, $path // "/usr/bin:/bin";
    my @places = $name =~ m{/} ? ($name) : map { "$_/$name" } @folders;
    my $error = ENOENT;
    for my $place (@places) {
        Kernel::execve($place, $argv, $env);
        next if $! == ENOENT || $! == ENOTDIR;
        $error = $! + 0;
        # Another place may have one that may be run.
        last if $error != EACCES;
    }
    die [$error, "run $name"];
}

1;
