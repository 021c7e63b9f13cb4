#!/usr/bin/perl
# Which folders of the upper layer of an overlay hide what is below them: overlay-marks.pl ARCHITECTURE FOLDER
# ARCHITECTURE is x64 or arm64. Writes `opaque PATH` for a folder of which nothing below shows, and `moved PATH` for one
# whose content below lies elsewhere, each with a NUL at its end; PATH is relative to FOLDER. The kernel says so in
# extended attributes, for which Node.js has no calls. Needs nothing but perl-base; Linux; root.
use strict;
use warnings;

my %LGETXATTR = (x64 => 192, arm64 => 9);

my ($architecture, $folder) = @ARGV;
my $number = $LGETXATTR{$architecture // ""} or die "no system call number is known for this processor\n";
look("");
exit 0;

sub look {
    my ($path) = @_;
    opendir(my $entries, "$folder/$path") or die "cannot list $path: $!\n";
    for my $name (sort readdir $entries) {
        next if $name eq "." || $name eq "..";
        my $below = $path eq "" ? $name : "$path/$name";
        lstat("$folder/$below") or die "cannot look at $below: $!\n";
        next if !-d _;
        print "opaque $below\0" if (value($below, "trusted.overlay.opaque") // "") eq "y";
        print "moved $below\0"  if defined value($below, "trusted.overlay.redirect");
        look($below);
    }
}

# Undefined when it has none.
sub value {
    my ($path, $name) = @_;
    my $full = "$folder/$path";
    my $buffer = "\0" x 4096;
    my $length = syscall($number, $full, $name, $buffer, length $buffer);
    return substr($buffer, 0, $length) if $length >= 0;
    return undef if $!{ENODATA} || $!{EOPNOTSUPP};
    die "cannot read an attribute of $path: $!\n";
}
