import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { endsWithThisProcess } from "../../../core/child-processes.test-kit.ts";
import { askForSharedServer, type SharedServers } from "../../../core/shared-servers.test-kit.ts";
import { freePort } from "../../../core/waiting.test-kit.ts";

/** A real S3 server (versitygw over a temporary folder) on a free port of the loopback interface. */
export type Versitygw = {
  /** Its base address. */
  endpoint: string;
  region: string;
  credentials: { accessKeyId: string; secretAccessKey: string };
  /** Makes an empty bucket with a name of its own, and tells it. */
  makeBucket(): Promise<string>;
  /** Where the server keeps everything. */
  folder: string;
  /** Folder of a bucket: objects are its files, by their keys. */
  folderOf(bucket: string): string;
  /** Removes the buckets that were made, and ends the server unless it is shared. */
  stop(): Promise<void>;
};

/** Words of the server's command line on top of the usual ones, e.g. for TLS, and the scheme that they lead to. */
export type VersitygwOptions = { flags?: readonly string[]; scheme?: "http" | "https"; region?: string };

const INSTALLER = fileURLToPath(new URL("../../../../.ci/install-versitygw", import.meta.url));
const NO_GO = 3;

/**
 * Path of the server's program, which is built where it is missing (two minutes). Undefined, with a line on standard
 * error, where there is no Go to build it with; an error there in CI.
 */
export async function findVersitygw(): Promise<string | undefined> {
  const installer = spawn("bash", [INSTALLER], { stdio: ["ignore", "pipe", "pipe"] });
  const output = collect(installer);
  const [code] = (await once(installer, "close")) as [number | null];
  // Before the path stands what Go says of a first build.
  if (code === 0) return output().trim().split("\n").at(-1);
  const inCi = (process.env.CI ?? "") !== "" && process.env.CI !== "false";
  if (code !== NO_GO || inCi) throw new Error(`versitygw could not be built:\n${output()}`);
  process.stderr.write("not run: tests against a real S3 server (there is no Go to build versitygw with)\n");
  return undefined;
}

const START_TIMEOUT_MS = 20_000;
const PORT_ATTEMPTS = 5;
export const CREDENTIALS = { accessKeyId: "testaccess", secretAccessKey: "testsecret123" };

/** Buckets on the one server of the test run, which files share that neither stop it nor need other words for it. */
export async function sharedVersitygw(): Promise<Versitygw> {
  return bucketsOf(await askForSharedServer("versitygw"), () => Promise.resolve());
}

/** Starts the server; rejects with its log when it does not answer in time. */
export async function startVersitygw(program: string, options: VersitygwOptions = {}): Promise<Versitygw> {
  const folder = await mkdtemp(join(tmpdir(), "engine-s3-"));
  await mkdir(join(folder, "data"));
  await mkdir(join(folder, "iam"));
  // Another program may take the free port first.
  for (let attempt = 1; ; attempt++) {
    try {
      return await startIn(folder, program, options);
    } catch (error) {
      if (attempt < PORT_ATTEMPTS && String(error).includes("address already in use")) continue;
      await rm(folder, { recursive: true });
      throw error;
    }
  }
}

type Place = { folder: string; port: number; region: string; flags: readonly string[] };

/** How the server is run on a port of the loopback interface, over the folders `data` and `iam` in a folder. */
export function versitygwCommand(program: string, { folder, port, region, flags }: Place) {
  const args = ["--port", `127.0.0.1:${port}`, "--quiet", "--region", region, "--iam-dir", join(folder, "iam")];
  const command: [string, ...string[]] = [program, ...args, ...flags, "posix", join(folder, "data")];
  return { command, env: { ROOT_ACCESS_KEY: CREDENTIALS.accessKeyId, ROOT_SECRET_KEY: CREDENTIALS.secretAccessKey } };
}

async function startIn(folder: string, program: string, options: VersitygwOptions): Promise<Versitygw> {
  const { flags = [], scheme = "http", region = "us-east-1" } = options;
  const port = await freePort();
  const { command, env } = versitygwCommand(program, { folder, port, region, flags });
  const [file, ...words] = command;
  const server = endsWithThisProcess(spawn(file, words, { stdio: ["ignore", "pipe", "pipe"], env }));
  const log = collect(server);
  await ready(port, server, log);
  return bucketsOf({ endpoint: `${scheme}://127.0.0.1:${port}`, region, folder }, async () => {
    const closed = once(server, "close");
    // It takes its time to end in order, and keeps nothing that matters here.
    server.kill("SIGKILL");
    await closed;
    await rm(folder, { recursive: true, maxRetries: 3 });
  });
}

/** Buckets of a server that stores in that folder; `stop` is what is done when they are gone. */
function bucketsOf({ endpoint, region, folder }: SharedServers["versitygw"], stop: () => Promise<void>): Versitygw {
  const made: string[] = [];
  const folderOf = (bucket: string) => join(folder, "data", bucket);
  return {
    endpoint,
    region,
    folder,
    credentials: CREDENTIALS,
    folderOf,
    async makeBucket() {
      const bucket = `bucket-${randomBytes(6).toString("hex")}`;
      made.push(bucket);
      const client = new S3Client({ endpoint, region, credentials: CREDENTIALS, forcePathStyle: true });
      await client.send(new CreateBucketCommand({ Bucket: bucket }));
      client.destroy();
      return bucket;
    },
    async stop() {
      for (const bucket of made) await rm(folderOf(bucket), { recursive: true, force: true, maxRetries: 3 });
      await stop();
    },
  };
}

/** Resolves when the server listens. */
async function ready(port: number, server: ChildProcess, log: () => string): Promise<void> {
  for (let waitedMs = 0; waitedMs < START_TIMEOUT_MS; waitedMs += 20) {
    if (server.exitCode !== null) throw new Error(`versitygw ended with code ${server.exitCode}:\n${log()}`);
    if (await listens(port)) return;
    await delay(20);
  }
  server.kill("SIGKILL");
  throw new Error(`versitygw did not listen within ${START_TIMEOUT_MS} ms:\n${log()}`);
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const opened = await Promise.race([
    once(socket, "connect").then(() => true),
    once(socket, "close").then(() => false),
  ]).catch(() => false);
  socket.destroy();
  return opened;
}

function collect(child: ChildProcess): () => string {
  let text = "";
  child.stdout?.on("data", (chunk) => (text += String(chunk)));
  child.stderr?.on("data", (chunk) => (text += String(chunk)));
  return () => text;
}
