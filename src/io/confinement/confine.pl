#!/usr/bin/env perl
# Takes rights away from itself, for good, and becomes a query process. Linux; needs no root.
#
#   confine.pl abi                        prints the kernel's version of Landlock; fails where it has none
#   confine.pl ARCHITECTURE FILTER WORD ARGUMENT... -- PROGRAM ARGUMENT...
#
# FILTER is a seccomp filter in hexadecimal. Files outside these are closed:
#
#   read PATH     a file, or all below a folder
#   run PATH      a file that may also be executed
#   write PATH    a file or folder to read and write; no links, sockets, pipes or devices can be made there
#   keep PATH     a file of /proc to read; it stays open, for nothing but to be known
#
# It runs at every start of a query process: perl-base is all it needs, and it loads no module.
use strict;
use warnings;

my %NUMBERS = (
    x64   => { prctl => 157, seccomp => 317, execve => 59,  kill => 62,  tgkill => 234 },
    arm64 => { prctl => 167, seccomp => 277, execve => 221, kill => 129, tgkill => 131 },
);
# These have the same number everywhere.
my %LANDLOCK = (create_ruleset => 444, add_rule => 445, restrict_self => 446);

use constant {
    O_PATH    => 010000000,
    O_CLOEXEC => 02000000,
    F_SETFD   => 2,

    PR_SET_NO_NEW_PRIVS          => 38,
    SECCOMP_SET_MODE_FILTER      => 1,
    SECCOMP_FILTER_FLAG_SPEC_ALLOW => 4,

    CREATE_RULESET_VERSION => 1,
    RULE_PATH_BENEATH      => 1,

    EXECUTE     => 1 << 0,
    WRITE_FILE  => 1 << 1,
    READ_FILE   => 1 << 2,
    READ_DIR    => 1 << 3,
    REMOVE_DIR  => 1 << 4,
    REMOVE_FILE => 1 << 5,
    MAKE_DIR    => 1 << 7,
    MAKE_FILE   => 1 << 8,
    TRUNCATE    => 1 << 14,

    CONNECT_AND_BIND_TCP    => 0b11,
    UNIX_SOCKETS_AND_SIGNALS => 0b11,

    LOAD          => 0x20,
    JUMP_IF_EQUAL => 0x15,
    RETURN        => 0x06,
    ALLOW         => 0x7fff0000,
    REFUSE        => 0x00050001,
    NUMBER        => 0,
    FIRST_ARGUMENT => 16,
};

# Rights over files, by the version that brought them; all are refused where no rule grants them.
my %FILE_RIGHTS = (1 => 0x1fff, 2 => 0x3fff, 3 => 0x7fff, 4 => 0x7fff, 5 => 0xffff);
my $NEWEST_FILE_RIGHTS = 5;

my $abi = syscall($LANDLOCK{create_ruleset}, 0, 0, CREATE_RULESET_VERSION);
$abi >= 1 or fail("this kernel has no Landlock");
if (@ARGV == 1 && $ARGV[0] eq "abi") {
    print "$abi\n";
    exit 0;
}

my ($architecture, $filter) = splice @ARGV, 0, 2;
my $numbers = $NUMBERS{$architecture // ""} or fail("no system call numbers are known for this architecture");
my $handled = $FILE_RIGHTS{ $abi < $NEWEST_FILE_RIGHTS ? $abi : $NEWEST_FILE_RIGHTS };

my %GRANTED = (
    read  => READ_FILE | READ_DIR,
    run   => READ_FILE | EXECUTE,
    write => READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | MAKE_DIR | MAKE_FILE | REMOVE_DIR | REMOVE_FILE,
    keep  => READ_FILE,
);
# What a rule about a file, not a folder, may grant.
my $OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE;

syscall($numbers->{prctl}, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 or fail("cannot give up new privileges: $!");
my $ruleset = create_ruleset();
# Rules are about files, not names: the kernel forgets a file of /proc that nobody has open, and makes another one when
# the name is used again.
my @kept;
while (defined(my $word = shift @ARGV)) {
    last if $word eq "--";
    my $rights = $GRANTED{$word} or fail("there is no rule $word");
    my $path = shift @ARGV // fail("$word takes an argument");
    grant($rights, $path, $word eq "keep");
}
@ARGV or fail("there is no program to run");
syscall($LANDLOCK{restrict_self}, $ruleset, 0) == 0 or fail("cannot restrict itself: $!");
run(@ARGV);

sub fail {
    my ($sentence) = @_;
    print STDERR "$sentence\n";
    exit 1;
}

sub create_ruleset {
    my $attributes = pack("Q", $handled);
    $attributes .= pack("Q", CONNECT_AND_BIND_TCP)     if $abi >= 4;
    $attributes .= pack("Q", UNIX_SOCKETS_AND_SIGNALS) if $abi >= 6;
    my $created = syscall($LANDLOCK{create_ruleset}, $attributes, length $attributes, 0);
    $created >= 0 or fail("cannot make a ruleset: $!");
    return $created;
}

sub grant {
    my ($rights, $path, $keep) = @_;
    sysopen(my $file, $path, O_PATH | O_CLOEXEC) or fail("cannot open $path: $!");
    $rights &= $handled;
    $rights &= $OF_FILES if !-d $path;
    my $rule = pack("Ql", $rights, fileno $file);
    syscall($LANDLOCK{add_rule}, $ruleset, RULE_PATH_BENEATH, $rule, 0) == 0 or fail("cannot grant $path: $!");
    return if !$keep;
    fcntl($file, F_SETFD, 0) or fail("cannot keep $path: $!");
    push @kept, $file;
}

sub run {
    my @command = @_;
    my @environment = map { "$_=$ENV{$_}" } keys %ENV;
    my $program = "";
    $program .= $command[0];
    my ($arguments, $variables) = map { pack("p*", @$_) . pack("J", 0) } \@command, \@environment;
    # Before the general filter, which has no system call for taking on another one.
    take_on(own_filter(unpack("J", pack("p", $program)) & 0xffffffff));
    take_on(pack("H*", $filter));
    syscall($numbers->{execve}, $program, $arguments, $variables);
    fail("cannot run $program: $!");
}

sub take_on {
    my ($instructions) = @_;
    my $program = pack("S x6 P", length($instructions) / 8, $instructions);
    my $flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    syscall($numbers->{seccomp}, SECCOMP_SET_MODE_FILTER, $flags, $program) == 0 or fail("cannot take on a filter: $!");
}

# Signals go to this process alone; no program is run but the one whose name is at that place, which is its own memory
# only until then.
sub own_filter {
    my ($program_address) = @_;
    return join "",
        instruction(LOAD,          0, 0, NUMBER),
        instruction(JUMP_IF_EQUAL, 4, 0, $numbers->{execve}),
        instruction(JUMP_IF_EQUAL, 1, 0, $numbers->{kill}),
        instruction(JUMP_IF_EQUAL, 0, 5, $numbers->{tgkill}),
        instruction(LOAD,          0, 0, FIRST_ARGUMENT),
        instruction(JUMP_IF_EQUAL, 3, 2, $$),
        instruction(LOAD,          0, 0, FIRST_ARGUMENT),
        instruction(JUMP_IF_EQUAL, 1, 0, $program_address),
        instruction(RETURN,        0, 0, REFUSE),
        instruction(RETURN,        0, 0, ALLOW);
}

sub instruction {
    my ($code, $if_true, $if_false, $k) = @_;
    return pack("S C C L", $code, $if_true, $if_false, $k);
}
