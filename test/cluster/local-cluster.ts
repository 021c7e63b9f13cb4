import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from "node:fs";
import { connect } from "node:net";
import { once } from "node:events";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { CreateBucketCommand, HeadBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { findVersitygw } from "../../src/io/objectstore/s3/versitygw.test-kit.ts";
import { answers, freePort, Program } from "./program.ts";

/**
 * A whole cluster on this machine: PostgreSQL, an S3 server, and every role as processes of their own on the loopback
 * interface. `npm run cluster` starts it to be tried, and the cluster tests start it to be broken.
 */
export type LocalCluster = {
  /** Base addresses that clients use. */
  edges: readonly string[];
  /** All processes by name: `postgres`, `s3`, `edge-1`, `query-1`, `ingest-1`, `committer-1`, `compaction-1`, … */
  programs: ReadonlyMap<string, Program>;
  /** Base address of each engine process, by name. */
  urls: ReadonlyMap<string, string>;
  /** Folder of the logs, `<name>.log`. */
  logs: string;
  /** Ends everything, clients' servers first; the folder stays. */
  stop(): Promise<void>;
};

export type LocalClusterOptions = {
  /** Data, logs and the servers' own folders; made where it is missing, and taken up again where it is not. */
  folder: string;
  /** Settings of every engine process on top of the usual ones. */
  env?: Readonly<Record<string, string>>;
  /** Where the engine processes find the S3 server, if not directly. */
  storeEndpoint?: (endpoint: string) => Promise<string>;
  /** How many of each role. */
  counts?: Partial<typeof COUNTS>;
};

const COUNTS = { query: 2, ingest: 2, committer: 1, compaction: 1, worker: 1, edge: 2 };
type Role = keyof typeof COUNTS;

const REGION = "us-east-1";
const BUCKET = "engine";
const KEYS = { accessKeyId: "cluster", secretAccessKey: "cluster-secret" };
const ENTRY = fileURLToPath(new URL("../../roles/main.ts", import.meta.url));

/** Starts everything and waits until all of it serves; rejects, with nothing left running, when a part does not. */
export async function startLocalCluster(options: LocalClusterOptions): Promise<LocalCluster> {
  const { folder } = options;
  const logs = join(folder, "logs");
  mkdirSync(logs, { recursive: true });
  const programs = new Map<string, Program>();
  const stop = async (): Promise<void> => {
    // The last started first: edges, then what they forward to, then what holds the data.
    for (const program of [...programs.values()].reverse()) await program.stop();
  };
  try {
    const postgres = await postgresProgram(join(folder, "postgres"), logs);
    programs.set("postgres", postgres.program);
    const s3 = await s3Program(join(folder, "s3"), logs);
    programs.set("s3", s3.program);
    await Promise.all([postgres.program.start(), s3.program.start()]);
    await makeBucket(s3.endpoint);
    const common = {
      ...options.env,
      ENGINE_CATALOG_URL: postgres.url,
      ENGINE_OBJSTORE_ENDPOINT: (await options.storeEndpoint?.(s3.endpoint)) ?? s3.endpoint,
      ENGINE_OBJSTORE_REGION: REGION,
      ENGINE_OBJSTORE_BUCKET: BUCKET,
      ENGINE_OBJSTORE_ACCESS_KEY_ID: KEYS.accessKeyId,
      ENGINE_OBJSTORE_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
    };
    const urls = await startRoles({ folder, logs, common, counts: { ...COUNTS, ...options.counts }, programs });
    const edges = [...urls].filter(([name]) => name.startsWith("edge-")).map(([, url]) => url);
    return { edges, programs, urls, logs, stop };
  } catch (error) {
    await Promise.all([...programs.values()].map((program) => program.kill()));
    throw error;
  }
}

type RolesOptions = {
  folder: string;
  logs: string;
  common: Readonly<Record<string, string>>;
  counts: Readonly<Record<Role, number>>;
  /** Taken up here, in the order of their start. */
  programs: Map<string, Program>;
};

/** Those that hold on their own first, together; then the edges, which forward to them. */
async function startRoles({ folder, logs, common, counts, programs }: RolesOptions): Promise<Map<string, string>> {
  const urls = new Map<string, string>();
  const make = async (role: Role, env: Readonly<Record<string, string>>): Promise<Program[]> => {
    const made: Program[] = [];
    for (let n = 1; n <= counts[role]; n++) {
      const name = `${role}-${n}`;
      const address = `127.0.0.1:${await freePort()}`;
      urls.set(name, `http://${address}`);
      const home = join(folder, name);
      mkdirSync(home, { recursive: true });
      const program = new Program({
        name,
        command: [process.execPath, ENTRY, "server"],
        env: { ...inherited(), ...common, ...env, ENGINE_ROLES: role, ENGINE_HTTP_ADDR: address, ENGINE_HOME: home },
        logFile: join(logs, `${name}.log`),
        isReady: () => answers(`http://${address}/health`),
      });
      programs.set(name, program);
      made.push(program);
    }
    return made;
  };
  const inner: Program[] = [];
  for (const role of ["query", "ingest", "committer", "compaction", "worker"] as const) {
    inner.push(...(await make(role, {})));
  }
  await Promise.all(inner.map((program) => program.start()));
  const peersOf = (role: Role): string =>
    [...urls]
      .filter(([name]) => name.startsWith(`${role}-`))
      .map(([, url]) => url)
      .join(",");
  const edges = await make("edge", { ENGINE_QUERY_PEERS: peersOf("query"), ENGINE_INGEST_PEERS: peersOf("ingest") });
  await Promise.all(edges.map((program) => program.start()));
  return urls;
}

/** What a process needs of this one's surroundings, without settings of the engine that the shell may carry. */
function inherited(): Record<string, string> {
  const { PATH = "", HOME = "", TMPDIR, TZ } = process.env;
  return { PATH, HOME, ...(TMPDIR === undefined ? {} : { TMPDIR }), ...(TZ === undefined ? {} : { TZ }) };
}

/** Debian's place for the programs of PostgreSQL. */
const POSTGRES_FOLDER = "/usr/lib/postgresql";

function postgresPrograms(): string {
  const versions = existsSync(POSTGRES_FOLDER) ? readdirSync(POSTGRES_FOLDER).map(Number) : [];
  const newest = Math.max(...versions.filter((version) => version > 0));
  const programs = join(POSTGRES_FOLDER, String(newest), "bin");
  if (existsSync(join(programs, "initdb"))) return programs;
  throw new Error("there is no PostgreSQL here: install it (Debian: apt-get install postgresql)");
}

/** PostgreSQL refuses to run as root; Debian's package makes a user for it. */
function asPostgres(command: readonly [string, ...string[]]): [string, ...string[]] {
  if (process.getuid?.() !== 0) return [...command];
  return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", ...command];
}

async function postgresProgram(folder: string, logs: string): Promise<{ program: Program; url: string }> {
  const programs = postgresPrograms();
  const data = join(folder, "data");
  if (!existsSync(data)) {
    mkdirSync(data, { recursive: true });
    chmodSync(data, 0o700);
    if (process.getuid?.() === 0) {
      const [uid, gid] = ["-u", "-g"].map((flag) =>
        Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" })),
      );
      for (const path of [folder, data]) chownSync(path, uid ?? 0, gid ?? 0);
      // That user has to come through a folder that was made for this one alone.
      chmodSync(dirname(folder), 0o711);
    }
    const [file, ...args] = asPostgres([
      join(programs, "initdb"),
      "-D",
      data,
      "-U",
      "engine",
      "-A",
      "trust",
      "-E",
      "UTF8",
    ]);
    execFileSync(file, args, { stdio: "pipe", cwd: "/" });
  }
  const port = await freePort();
  const settings = [
    `port=${port}`,
    "listen_addresses=127.0.0.1",
    `unix_socket_directories=${data}`,
    "max_connections=300",
  ];
  return {
    url: `postgres://engine@127.0.0.1:${port}/postgres`,
    program: new Program({
      name: "postgres",
      command: asPostgres([join(programs, "postgres"), "-D", data, ...settings.flatMap((setting) => ["-c", setting])]),
      env: inherited(),
      logFile: join(logs, "postgres.log"),
      isReady: () => accepts(join(programs, "pg_isready"), port),
      // Ends now, in order: sessions are cut, what was committed is safe.
      stopSignal: "SIGINT",
    }),
  };
}

async function accepts(pgIsReady: string, port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
  try {
    execFileSync(pgIsReady, ["-h", "127.0.0.1", "-p", String(port), "-q"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

async function s3Program(folder: string, logs: string): Promise<{ program: Program; endpoint: string }> {
  const binary = await findVersitygw();
  if (binary === undefined) throw new Error("there is no S3 server here: install Go, of which it is built");
  const [data, iam] = [join(folder, "data"), join(folder, "iam")];
  for (const path of [data, iam]) mkdirSync(path, { recursive: true });
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  const flags = ["--port", new URL(endpoint).host, "--quiet", "--health", "/health", "--region", REGION];
  return {
    endpoint,
    program: new Program({
      name: "s3",
      command: [binary, ...flags, "--iam-dir", iam, "posix", data],
      env: { ...inherited(), ROOT_ACCESS_KEY: KEYS.accessKeyId, ROOT_SECRET_KEY: KEYS.secretAccessKey },
      logFile: join(logs, "s3.log"),
      isReady: () => answers(`${endpoint}/health`),
    }),
  };
}

async function makeBucket(endpoint: string): Promise<void> {
  const client = new S3Client({ endpoint, region: REGION, credentials: KEYS, forcePathStyle: true });
  try {
    await client.send(new HeadBucketCommand({ Bucket: BUCKET }));
  } catch {
    await client.send(new CreateBucketCommand({ Bucket: BUCKET }));
  } finally {
    client.destroy();
  }
}

/** Makes the address list that `npm run cluster` prints and leaves in the folder. */
export function describeCluster({ edges, urls, logs }: LocalCluster): string {
  const width = Math.max(...[...urls.keys()].map(({ length }) => length));
  const lines = [...urls].map(([name, url]) => `  ${name.padEnd(width)}  ${url}`);
  return [`the cluster serves on ${edges.join(" and ")}`, ...lines, `  logs: ${logs}`].join("\n");
}
