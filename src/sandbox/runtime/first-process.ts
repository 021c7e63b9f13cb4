import { AGENT_GID, AGENT_UID } from "./runtime.ts";
import { type Step, tinyProgram, words } from "./tiny-program.ts";

/**
 * The first process of a machine, as a tiny program: a machine that idles needs one page of memory.
 *
 * Processes whose parents have ended become its children; it ignores their ends, so that the kernel reaps them. It
 * becomes the agent with no capability (it is started with the right to change its ids, and may be looked into by the
 * agent: `/proc/1/fd/1` is the console), and then:
 *
 *     write(ready, "r")   it is in place
 *     read(ready)         its launcher has gone, the supervisor is its parent
 *     prctl(PR_SET_PDEATHSIG, SIGKILL)
 *     write(ready, "d")   the machine dies with its supervisor
 *     close(ready), and sleep for ever
 */
export function firstProcess(system: NodeJS.Architecture, readyFd: number): Uint8Array {
  return tinyProgram(system, { data: DATA, steps: stepsOf(readyFd), last: SLEEP });
}

const SIGKILL = 9;
const SIGCHLD = 17;
const PR_SET_PDEATHSIG = 1;
const PR_SET_DUMPABLE = 4;

/** `struct sigaction` with SIG_IGN; header (version 3, itself) and data of `capset`. */
const DATA = {
  ignore: words(1, 0, 0, 0, 0, 0, 0, 0),
  capabilityHeader: words(0x2008_0522, 0),
  noCapabilities: words(0, 0, 0, 0, 0, 0),
  ready: new TextEncoder().encode("r"),
  done: new TextEncoder().encode("d"),
};

function stepsOf(readyFd: number): Step[] {
  return [
    { call: "rtSigaction", arguments: [SIGCHLD, "ignore", 0, 8], expect: 0 },
    { call: "setresgid", arguments: [AGENT_GID, AGENT_GID, AGENT_GID], expect: 0 },
    { call: "setresuid", arguments: [AGENT_UID, AGENT_UID, AGENT_UID], expect: 0 },
    { call: "capset", arguments: ["capabilityHeader", "noCapabilities"], expect: 0 },
    { call: "prctl", arguments: [PR_SET_DUMPABLE, 1], expect: 0 },
    { call: "write", arguments: [readyFd, "ready", 1], expect: 1 },
    { call: "read", arguments: [readyFd, { stack: "address" }, 1], expect: 1 },
    { call: "prctl", arguments: [PR_SET_PDEATHSIG, SIGKILL], expect: 0 },
    { call: "write", arguments: [readyFd, "done", 1], expect: 1 },
    { call: "close", arguments: [readyFd], expect: 0 },
  ];
}
const SLEEP: Step = { call: "ppoll", arguments: [0, 0, 0, 0], expect: 0 };
