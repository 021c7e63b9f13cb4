import { spawnSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
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
/** Of which `.ci/install-versitygw` builds the S3 server. */
const GO_NEEDED = { major: 1, minor: 25 };

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
  "read-only files": {
    isThere: canForbidWriting,
    remedy: "apt-get install e2fsprogs, and a TMPDIR on a file system that has immutable files",
  },
  perl: { isThere: () => has("perl"), remedy: "apt-get install perl" },
  debootstrap: { isThere: () => has("debootstrap"), remedy: "apt-get install debootstrap" },
  PostgreSQL: {
    isThere: () => globSync("/usr/lib/postgresql/*/bin/initdb").length > 0,
    remedy: "apt-get install postgresql",
  },
  Go: { isThere: hasGo, remedy: `Go ${GO_NEEDED.major}.${GO_NEEDED.minor} or newer, on the path: .ci/install-go` },
  "S3 server": { isThere: () => hasGo() || hasVersitygw(), remedy: "it is built with Go: .ci/install-go" },
  python3: { isThere: () => has("python3"), remedy: "apt-get install python3-venv" },
  "python3-venv": {
    isThere: () => succeeds("python3", "-c", "import ensurepip, sys; sys.exit(sys.version_info < (3, 10))"),
    remedy: "apt-get install python3-venv",
  },
  openssl: { isThere: () => has("openssl"), remedy: "apt-get install openssl" },
  git: { isThere: () => has("git"), remedy: "apt-get install git" },
  strace: {
    isThere: () => succeeds("strace", "-f", "-o", "/dev/null", "true"),
    remedy: "apt-get install strace, on a machine that lets it trace",
  },
  gcc: {
    isThere: () => has("gcc") && existsSync("/usr/include/stdio.h"),
    remedy: "apt-get install gcc libc6-dev",
  },
  ps: { isThere: () => has("ps"), remedy: "apt-get install procps" },
  "/usr/bin/node": {
    isThere: () => existsSync("/usr/bin/node"),
    remedy: "sandboxes see the programs of /usr: link node to /usr/bin/node",
  },
  sqlite3: { isThere: () => has("sqlite3"), remedy: "apt-get install sqlite3" },
  Java: { isThere: () => has("java") && has("javac"), remedy: "apt-get install default-jdk-headless" },
  Maven: { isThere: () => has("mvn"), remedy: "apt-get install maven" },
  "systemd-analyze": { isThere: () => has("systemd-analyze"), remedy: "apt-get install systemd" },
  promtool: { isThere: () => has("promtool"), remedy: "apt-get install prometheus" },
  terraform: {
    isThere: () => succeeds("terraform", "version") || succeeds("tofu", "version"),
    remedy: "Terraform 1.11 or newer on the path, or .ci/install-opentofu",
  },
  shellcheck: { isThere: () => has("shellcheck"), remedy: "apt-get install shellcheck" },
  unzip: { isThere: () => has("unzip"), remedy: "apt-get install unzip" },
  curl: { isThere: () => has("curl"), remedy: "apt-get install curl" },
  chromium: {
    isThere: () => has("chromium") || process.env["ENGINE_TEST_CHROMIUM"] !== undefined,
    remedy: "apt-get install --no-install-recommends chromium",
  },
  firefox: { isThere: () => has("firefox-esr"), remedy: "apt-get install --no-install-recommends firefox-esr" },
  webkit: {
    isThere: () => has("WebKitWebDriver") && has("Xvfb") && miniBrowser() !== undefined,
    remedy: "apt-get install --no-install-recommends webkit2gtk-driver xvfb",
  },
  minisign: { isThere: () => has("minisign"), remedy: "apt-get install minisign" },
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

/** The browser that tests drive; `ENGINE_TEST_CHROMIUM` names another one. */
function chromiumProgram(): string {
  return process.env["ENGINE_TEST_CHROMIUM"] ?? "/usr/bin/chromium";
}

/**
 * How that browser is started. As root it has no sandbox, and the machine no graphics. What it would show under its address
 * bar are two pages of its own in each window, which take half as much CPU again as the pages of a test.
 */
export function chromiumLaunch(): { executablePath: string; args: string[] } {
  const without = "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup";
  return { executablePath: chromiumProgram(), args: ["--no-sandbox", "--disable-gpu", without] };
}

/** The browser of WebKitGTK that its driver starts, in the folder of the newest version. */
export function miniBrowser(): string | undefined {
  return globSync("/usr/lib/*/webkit2gtk-4.*/MiniBrowser").toSorted().at(-1);
}

/** Whether a program is on the path, or where Debian keeps those of root. */
function has(program: string): boolean {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  return folders.some((folder) => folder !== "" && existsSync(join(folder, program)));
}

function succeeds(program: string, ...args: readonly string[]): boolean {
  return has(program) && spawnSync(program, args, { stdio: "ignore" }).status === 0;
}

/** Debian 12 has one that is too old. */
function hasGo(): boolean {
  if (!has("go")) return false;
  const { stdout } = spawnSync("go", ["env", "GOVERSION"], { encoding: "utf8" });
  const [major = 0, minor = 0] = (/^go(\d+)\.(\d+)/.exec(stdout)?.slice(1) ?? []).map(Number);
  return major > GO_NEEDED.major || (major === GO_NEEDED.major && minor >= GO_NEEDED.minor);
}

/** Whether it was built before, in the version that is wanted. */
function hasVersitygw(): boolean {
  const script = readFileSync(new URL("../../.ci/install-versitygw", import.meta.url), "utf8");
  const version = /^version=(\S+)$/m.exec(script)?.[1] ?? "";
  const cache = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  return existsSync(join(cache, "engine-tests", `versitygw-${version}`, "versitygw"));
}

/** Whether this process may mount: root of a container may lack CAP_SYS_ADMIN, or have it without the call. */
function mayMount(): boolean {
  if (!ON_LINUX) return false;
  const effective = /^CapEff:\s+([0-9a-f]+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1] ?? "0";
  if ((BigInt(`0x${effective}`) & (1n << 21n)) === 0n) return false;
  return inFolder((folder) => {
    if (!succeeds("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder)) return !has("mount");
    return succeeds("umount", folder);
  });
}

/** Whether a file can be kept from being written: permissions do not bind root, an immutable flag does. */
function canForbidWriting(): boolean {
  if (process.getuid?.() !== 0) return true;
  return inFolder((folder) => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    return succeeds("chattr", "+i", file) && succeeds("chattr", "-i", file);
  });
}

function inFolder(run: (folder: string) => boolean): boolean {
  const folder = mkdtempSync(join(tmpdir(), "engine-probe-"));
  try {
    return run(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
