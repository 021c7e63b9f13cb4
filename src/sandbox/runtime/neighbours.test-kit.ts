import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { execRequest } from "./machines.test-kit.ts";
import type { Exec, Machine } from "./runtime.ts";

const BEGIN = `
use strict; use warnings; use Config;
my $arm = $Config{archname} =~ /^aarch64/ ? 1 : 0;
my %calls = (inotify_init1 => [294, 26], inotify_add_watch => [254, 27], mq_open => [240, 180], sendmsg => [46, 211],
  epoll_create1 => [291, 20], epoll_ctl => [233, 21], prlimit => [302, 261]);
sub call { my $name = shift; return syscall($calls{$name}[$arm], @_) }
my @held;
`;

/**
 * What the kernel has a limit of: Perl that defines `take($n)`, which takes the n-th of it and is false when there is no
 * more.
 */
export const RESOURCES = {
  "inotify instances": "sub take { return call('inotify_init1', 0) >= 0 }",
  "inotify watches": `
    my $notify = call('inotify_init1', 0);
    my $at = "/tmp/watched-$$";
    mkdir $at or die;
    sub take { my $path = "$at/$_[0]"; mkdir $path or die; return call('inotify_add_watch', $notify, $path, 2) >= 0 }`,
  terminals: "sub take { open(my $end, '+<', '/dev/ptmx') or return 0; push @held, $end; return 1 }",
  "bytes of message queues": `
    sub take { my $name = "queue-$$-$_[0]"; return call('mq_open', $name, 0102, 0600, 0) >= 0 }`,
  // A pipe that is over the limit of its user has fewer pages than others. 1032: F_GETPIPE_SZ.
  "pages of pipes": `
    sub take { pipe(my $out, my $in) or die; push @held, $out, $in; return fcntl($in, 1032, 0) >= 65536 }`,
  // A socket that nobody reads from. One may have as many on their way as one may have open; 7: RLIMIT_NOFILE.
  "descriptors on their way": `
    my $limit = pack("Q2", 64, 64);
    call('prlimit', 0, 7, $limit, 0) == 0 or die "no limit: $!";
    socketpair(my $near, my $far, 1, 1, 0) or die;
    sub take {
      my ($data, $control) = ("x", pack("Q i i i x4", 20, 1, 1, 0));
      my $parts = pack("P Q", $data, 1);
      my $message = pack("Q L x4 P Q P Q i x4", 0, 0, $parts, 1, $control, length $control, 0);
      return call('sendmsg', fileno $near, $message, 0) == 1;
    }`,
  // Each instance of epoll watches the same 800 ends of pipes; the event's struct is packed on x86 alone.
  "watches of epoll": `
    my $limit = pack("Q2", 4096, 4096);
    call('prlimit', 0, 7, $limit, 0) == 0 or die "no limit: $!";
    for (1 .. 400) { pipe(my $out, my $in) or die; push @held, $out, $in }
    my ($instance, $event) = (-1, $arm ? pack("L x4 Q", 1, 0) : pack("L Q", 1, 0));
    sub take {
      my $end = $_[0] % @held;
      $instance = call('epoll_create1', 0) if $end == 0;
      return $instance >= 0 && call('epoll_ctl', $instance, 1, fileno $held[$end], $event) == 0;
    }`,
} as const;

export type Resource = keyof typeof RESOURCES;

/** Takes so many at most, says how many it got and why not more, and holds them for a minute where it is told so. */
export function taking(resource: Resource, most: number, holds: boolean): string[] {
  const script = `${BEGIN}${RESOURCES[resource]}
    my $count = 0;
    $count++ while $count < ${most} && take($count);
    $| = 1;
    print "$count\\n";
    sleep ${holds ? 60 : 0};
  `;
  return ["perl", "-e", script];
}

/** Runs it in a machine until it has said how many it got; it goes on. */
export async function takeIn(machine: Machine, command: readonly string[]): Promise<{ exec: Exec; got: number }> {
  const exec = await machine.exec(execRequest(command));
  const { got, said } = await endOfTaking(exec);
  if (got === undefined) throw new Error(`it could not take anything: ${said}`);
  return { exec, got };
}

/** How many it got, once it has said so; without that, what it said, and the signal that has ended it before its time was over. */
export async function endOfTaking(
  exec: Exec,
): Promise<{ got: number | undefined; said: string; signal: string | undefined }> {
  let [said, signal]: [string, string | undefined] = ["", undefined];
  for await (const output of exec.output()) {
    if (output.type === "stdout" || output.type === "stderr") said += Buffer.from(output.bytes).toString();
    if (output.type === "exit" && !output.timedOut) ({ signal } = output);
    if (output.type === "exit" || said.includes("\n")) break;
  }
  return { got: /^\d+\n$/.test(said) ? Number(said) : undefined, said, signal };
}

/** The same on the host, as this process's user. Message queues would stay there: they go with their namespace. */
export async function takeHere(command: readonly string[]): Promise<number> {
  const { stdout } = await promisify(execFile)("unshare", ["--ipc", ...command]);
  return Number(stdout);
}

/** The host's id of the user who has made a namespace. */
export async function ownerOfUsers(pid: number): Promise<number> {
  const script = `open my $users, '<', '/proc/${pid}/ns/user' or die; my $id = pack 'L', 0; ioctl($users, 0xb704, $id) or die $!; print unpack 'L', $id`;
  const { stdout } = await promisify(execFile)("perl", ["-e", script]);
  return Number(stdout);
}
