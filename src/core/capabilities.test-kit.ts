import { existsSync, globSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";

/**
 * What this machine has of what tests need beside Node, looked for once per process and printed as a table before the
 * tests. A test that needs one asks `lacking`: where something lacks it is skipped with a line that says what to install.
 */
type Capability = {
  isThere: () => boolean;
  /** What to do for it. */
  remedy: string;
};

const ON_LINUX = process.platform === "linux";

const CAPABILITIES = {
  root: { isThere: () => ON_LINUX && process.getuid?.() === 0, remedy: "run as root on Linux" },
  mounts: { isThere: mayMount, remedy: "a machine where root may mount: a container needs --privileged" },
  "loop devices": {
    isThere: () => ["/sys/block", "/dev/loop-control"].every((path) => existsSync(path)),
    remedy: "modprobe loop",
  },
  bwrap: { isThere: () => has("bwrap"), remedy: "apt-get install bubblewrap" },
  runc: { isThere: () => has("runc"), remedy: "apt-get install runc" },
  runsc: { isThere: () => has("runsc"), remedy: ".ci/install-runsc, which takes minutes" },
  "mkfs.ext4": { isThere: () => has("mkfs.ext4"), remedy: "apt-get install e2fsprogs" },
  mount: { isThere: () => has("mount"), remedy: "apt-get install mount" },
  prlimit: { isThere: () => has("prlimit") && has("setpriv"), remedy: "apt-get install util-linux" },
  perl: { isThere: () => has("perl"), remedy: "apt-get install perl" },
  debootstrap: { isThere: () => has("debootstrap"), remedy: "apt-get install debootstrap" },
  PostgreSQL: {
    isThere: () => globSync("/usr/lib/postgresql/*/bin/initdb").length > 0,
    remedy: "apt-get install postgresql",
  },
  Go: { isThere: () => has("go") || existsSync("/usr/local/go/bin/go"), remedy: ".ci/install-go" },
  python3: { isThere: () => has("python3"), remedy: "apt-get install python3-venv" },
  openssl: { isThere: () => has("openssl"), remedy: "apt-get install openssl" },
  git: { isThere: () => has("git"), remedy: "apt-get install git" },
  strace: { isThere: () => has("strace"), remedy: "apt-get install strace" },
  gcc: {
    isThere: () => has("gcc") && existsSync("/usr/include/stdio.h"),
    remedy: "apt-get install gcc libc6-dev",
  },
  ps: { isThere: () => has("ps"), remedy: "apt-get install procps" },
  sqlite3: { isThere: () => has("sqlite3"), remedy: "apt-get install sqlite3" },
  Java: { isThere: () => has("java") && has("javac"), remedy: "apt-get install default-jdk-headless" },
  Maven: { isThere: () => has("mvn"), remedy: "apt-get install maven" },
  curl: { isThere: () => has("curl"), remedy: "apt-get install curl" },
} as const satisfies Record<string, Capability>;

export type CapabilityName = keyof typeof CAPABILITIES;

const found = new Map<CapabilityName, boolean>();

/** The first of them that this machine lacks, in words that say what to do for it; undefined where it has them all. */
export function lacking(...names: readonly CapabilityName[]): string | undefined {
  const name = names.find((one) => !isThere(one));
  return name && `there is no ${name} (${CAPABILITIES[name].remedy})`;
}

/** All of them, a line each. */
export function capabilityTable(): string {
  const names = Object.keys(CAPABILITIES) as CapabilityName[];
  const width = Math.max(...names.map((name) => name.length));
  return names
    .map((name) => `${name.padEnd(width)}  ${isThere(name) ? "yes" : `no: ${CAPABILITIES[name].remedy}`}`)
    .join("\n");
}

function isThere(name: CapabilityName): boolean {
  const known = found.get(name) ?? CAPABILITIES[name].isThere();
  found.set(name, known);
  return known;
}

/** Whether a program is on the path, or where Debian keeps those of root. */
function has(program: string): boolean {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  return folders.some((folder) => folder !== "" && existsSync(join(folder, program)));
}

/** Whether this process has CAP_SYS_ADMIN, which root of a container lacks. */
function mayMount(): boolean {
  if (!ON_LINUX) return false;
  const effective = /^CapEff:\s+([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
  return (BigInt(`0x${effective}`) & (1n << 21n)) !== 0n;
}
