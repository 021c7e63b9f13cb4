import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { sleep, systemClock } from "../src/core/clock.ts";
import { messageOf } from "../src/core/errors.ts";
import { freePort } from "../src/core/waiting.test-kit.ts";

/**
 * `npm run soak -- deployment`: runs the image of a release without any rights, unpacks it with another tool, and boots a
 * real systemd with the units. As root, with podman, buildah, runc, skopeo, umoci and mmdebstrap; leaves nothing behind.
 *
 *     RELEASE_IMAGE=engine-1.2.3-image.oci.tar RELEASE_PROGRAM=engine-1.2.3-linux-x64 npm run soak -- deployment
 *
 * The first is what `npm run image` writes, the second the folder of an unpacked archive. Networks and memory are the
 * machine's own: each container has a limit of memory, and ends with this.
 */
const repository = fileURLToPath(new URL("..", import.meta.url));
const run = promisify(execFile);

async function main(): Promise<number> {
  const { RELEASE_IMAGE: image, RELEASE_PROGRAM: program } = process.env;
  if (image === undefined || program === undefined) {
    console.error("error: set RELEASE_IMAGE and RELEASE_PROGRAM; see scripts/deployment.ts");
    return 2;
  }
  const folder = await mkdtemp(join(tmpdir(), "engine-deployment-"));
  const podman = await podmanIn(folder);
  try {
    await layoutIsRead(image, folder);
    await imageRunsWithoutRights(image, podman);
    await unitsRun(program, folder, podman);
    return 0;
  } catch (error) {
    console.error(`FAILED: ${messageOf(error)}`);
    return 1;
  } finally {
    await podman("rm", "--all", "--force", "--time", "3");
    await podman("rmi", "--all", "--force");
    await rm(folder, { recursive: true, force: true });
  }
}

type Podman = (...args: readonly string[]) => Promise<string>;
const TIMEOUT_MS = 180_000;

/** Podman with a storage of its own, on runc, which takes the cgroups of both versions at once. */
async function podmanIn(folder: string): Promise<Podman> {
  const [storage, containers] = [join(folder, "storage.conf"), join(folder, "containers.conf")];
  const root = join(folder, "containers");
  await writeFile(storage, `[storage]\ndriver = "overlay"\ngraphroot = "${root}/root"\nrunroot = "${root}/run"\n`);
  await writeFile(
    containers,
    '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n' +
      '[containers]\ndefault_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]\n',
  );
  const env = { ...process.env, CONTAINERS_STORAGE_CONF: storage, CONTAINERS_CONF: containers };
  return async (...args) => (await run("podman", args, { env, timeout: TIMEOUT_MS })).stdout.trim();
}

/** Other programs than podman take the layout, for both architectures. */
async function layoutIsRead(image: string, folder: string): Promise<void> {
  for (const [arch, machine] of [
    ["amd64", "x86-64"],
    ["arm64", "aarch64"],
  ] as const) {
    const layout = join(folder, `layout-${arch}`);
    const copy = ["--insecure-policy", "--override-arch", arch, "copy", `oci-archive:${image}`, `oci:${layout}:test`];
    await run("skopeo", copy, { timeout: TIMEOUT_MS });
    await run("umoci", ["unpack", "--image", `${layout}:test`, join(layout, "bundle")], { timeout: TIMEOUT_MS });
    const { stdout } = await run("file", ["--brief", join(layout, "bundle/rootfs/opt/engine/node")]);
    check(`${arch}: skopeo copies it, umoci unpacks it, and Node is for it`, stdout.includes(machine), stdout);
    await rm(layout, { recursive: true });
  }
}

async function imageRunsWithoutRights(image: string, podman: Podman): Promise<void> {
  const name = (await podman("load", "--input", image)).replace(/^Loaded image:\s*/, "");
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const limits = ["--read-only", "--read-only-tmpfs=false", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--memory", "3g"];
  const env = ["--env", `ENGINE_HTTP_ADDR=127.0.0.1:${port}`, "--env", "ENGINE_GRPC_ADDR=off"];
  const security = ["--security-opt", "no-new-privileges", "--network", "host"];
  const id = await podman("run", "--detach", ...limits, ...security, ...env, name);
  await healthy(url);
  check("a row that was ingested is found", (await rowsAfterIngest(url)) === "1");
  check("it runs as 10001", (await podman("exec", id, "id", "-u")) === "10001");
  const status = await podman("exec", id, "engine", "status", "--server", url);
  check("it checks itself", status.includes("health   ok"), status);
  const startedMs = systemClock.monotonicMs();
  await podman("stop", "--time", "45", id);
  const seconds = (systemClock.monotonicMs() - startedMs) / 1_000;
  const code = await podman("inspect", id, "--format", "{{.State.ExitCode}}");
  check(`SIGTERM ends it in order, after ${seconds.toFixed(1)} s`, code === "0", code);
  await podman("rm", "--volumes", id);
}

/** What Debian needs to boot in a container. */
const BOOTABLE = "systemd,systemd-sysv,dbus,ca-certificates,libstdc++6";

async function unitsRun(program: string, folder: string, podman: Podman): Promise<void> {
  const base = join(folder, "base.tar");
  await run("mmdebstrap", ["--variant=minbase", `--include=${BOOTABLE}`, "bookworm", base], { timeout: 900_000 });
  await podman("import", base, "localhost/systemd:base");
  const context = join(folder, "context");
  await mkdir(context);
  await cp(program, join(context, "engine"), { recursive: true });
  await cp(join(repository, "deploy/systemd"), join(context, "units"), { recursive: true });
  const port = await freePort();
  await writeFile(join(context, "engine.env"), `ENGINE_HTTP_ADDR=127.0.0.1:${port}\nENGINE_GRPC_ADDR=off\n`);
  await writeFile(
    join(context, "Dockerfile"),
    [
      "FROM localhost/systemd:base",
      "COPY engine/ /opt/engine/",
      "COPY units/ /etc/systemd/system/",
      "COPY engine.env /etc/engine/engine.env",
      "RUN ln -s /opt/engine/bin/engine /usr/local/bin/engine && systemctl enable engine.target engine@all_in_one",
      'CMD ["/sbin/init"]',
      "",
    ].join("\n"),
  );
  await podman("build", "--isolation", "chroot", "--tag", "localhost/systemd:units", context);
  const boot = ["--systemd=always", "--privileged", "--network", "host", "--memory", "3g"];
  const id = await podman("run", "--detach", ...boot, "localhost/systemd:units");
  const url = `http://127.0.0.1:${port}`;
  const confinement = (await healthy(url)).query_confinement;
  check("the unit confines queries as the machine can", confinement?.startsWith("landlock") === true, confinement);
  check("a row that was ingested is found", (await rowsAfterIngest(url)) === "1");
  await podman("exec", id, "systemctl", "kill", "--signal=KILL", "--kill-whom=main", "engine@all_in_one");
  await sleep(systemClock, 1_000);
  await healthy(url);
  check("after kill -9 it is back, with what it had", (await rowsAfterIngest(url)) === "2");
  const exposure = await podman("exec", id, "systemd-analyze", "security", "--threshold=15", "engine@all_in_one");
  console.log(`      ${exposure.split("\n").at(-1)}`);
  await podman("exec", id, "systemctl", "stop", "engine.target", "engine@all_in_one");
  const state = await podman("exec", id, "systemctl", "show", "--property=Result", "engine@all_in_one");
  check("the target stops it in order", state === "Result=success", state);
}

/** Waits for the server. @throws Error after a minute without. */
async function healthy(url: string): Promise<{ query_confinement?: string }> {
  for (let attempt = 0; ; attempt++) {
    try {
      const response = await fetch(`${url}/health`, { signal: AbortSignal.timeout(5_000) });
      if (response.status === 200) return (await response.json()) as { query_confinement?: string };
    } catch (error) {
      if (attempt > 60) throw new Error(`${url} does not answer`, { cause: error });
    }
    await sleep(systemClock, 1_000);
  }
}

async function rowsAfterIngest(url: string): Promise<string> {
  const headers = { "X-Table": "notes" };
  const ingested = await fetch(`${url}/v1/ingest`, { method: "POST", headers, body: '{"body":"x"}' });
  if (ingested.status !== 200) throw new Error(`ingest answers ${ingested.status}`);
  const body = JSON.stringify({ query: "SELECT count(*) AS rows FROM notes" });
  const answer = await fetch(`${url}/v1/query`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  return String(((await answer.json()) as { rows?: unknown }).rows);
}

function check(claim: string, holds: boolean, found?: string): void {
  if (!holds) throw new Error(`${claim}: no${found === undefined ? "" : ` (${found})`}`);
  console.log(`ok    ${claim}`);
}

process.exitCode = await main();
