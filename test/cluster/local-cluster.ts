import { mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { CreateBucketCommand, HeadBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { systemClock } from "../../src/core/clock.ts";
import { PostgresFolder } from "../../src/db/postgres/server-folder.ts";
import { ROLES, type Role } from "../../src/deploy/local/layout.ts";
import {
  POSTGRES_SETTINGS,
  POSTGRES_STOP_SIGNAL,
  POSTGRES_USER,
  requirePostgresPrograms,
} from "../../src/deploy/local/postgres.ts";
import { answers, serves } from "../../src/deploy/local/probe.ts";
import { inherited, roleEnvironment } from "../../src/deploy/local/programs.ts";
import type { S3Connection } from "../../src/io/objectstore/s3/client.ts";
import { findVersitygw } from "../../src/io/objectstore/s3/versitygw.test-kit.ts";
import { Program } from "./program.ts";
import { freePort } from "../../src/core/waiting.test-kit.ts";

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
  /** Address of the catalog. */
  catalogUrl: string;
  /** The bucket and how to reach it, directly. */
  store: S3Connection;
  /** Ends everything, clients' servers first; the folder stays. */
  stop(): Promise<void>;
};

export type LocalClusterOptions = {
  /** Data, logs and the servers' own folders; made where it is missing, and taken up again where it is not. */
  folder: string;
  /** Settings of every engine process on top of the usual ones. */
  env?: Readonly<Record<string, string>>;
  /** Where the processes of a role find the S3 server, if not directly; asked once for each. */
  storeEndpoint?: (endpoint: string, role: Role) => Promise<string>;
  /** Words of the S3 server's command line on top of the usual ones. */
  storeFlags?: readonly string[];
  /** How many of each role. */
  counts?: Partial<Record<Role, number>>;
  /** The program that an engine process runs, asked at each of its starts; that of this checkout unless given. */
  entryOf?: (name: string) => string;
};

const ORDER = Object.entries(ROLES).map(([role, { count, rank }]) => ({ role: role as Role, count, rank }));

const REGION = "us-east-1";
const BUCKET = "engine";
const KEYS = { accessKeyId: "cluster", secretAccessKey: "cluster-secret" };
/** The program of this checkout. */
export const TODAY = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));

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
    const s3 = await s3Program(join(folder, "s3"), logs, options.storeFlags);
    programs.set("s3", s3.program);
    await Promise.all([postgres.program.start(), s3.program.start()]);
    await makeBucket(s3.endpoint);
    const common = {
      ...options.env,
      ENGINE_CATALOG_URL: postgres.url,
      ENGINE_OBJSTORE_REGION: REGION,
      ENGINE_OBJSTORE_BUCKET: BUCKET,
      ENGINE_OBJSTORE_ACCESS_KEY_ID: KEYS.accessKeyId,
      ENGINE_OBJSTORE_SECRET_ACCESS_KEY: KEYS.secretAccessKey,
    };
    const storeEndpoint = async (role: Role) => (await options.storeEndpoint?.(s3.endpoint, role)) ?? s3.endpoint;
    const { counts = {}, entryOf = () => TODAY } = options;
    const urls = await startRoles({ folder, logs, common, storeEndpoint, counts, programs, entryOf });
    const edges = [...urls].filter(([name]) => name.startsWith("edge-")).map(([, url]) => url);
    const store = {
      endpoint: s3.endpoint,
      region: REGION,
      bucket: BUCKET,
      credentials: KEYS,
      pathStyle: true,
      allowHttp: true,
    };
    return { edges, programs, urls, logs, catalogUrl: postgres.url, store, stop };
  } catch (error) {
    await Promise.all([...programs.values()].map((program) => program.kill()));
    throw error;
  }
}

type RolesOptions = {
  folder: string;
  logs: string;
  common: Readonly<Record<string, string>>;
  storeEndpoint: (role: Role) => Promise<string>;
  counts: Partial<Record<Role, number>>;
  /** Taken up here, in the order of their start. */
  programs: Map<string, Program>;
  entryOf: (name: string) => string;
};

/** Those of a rank together. */
async function startRoles(options: RolesOptions): Promise<Map<string, string>> {
  const { folder, logs, common, programs, entryOf } = options;
  const urls = new Map<string, string>();
  const peersOf = (role: Role): string =>
    [...urls].flatMap(([name, url]) => (name.startsWith(`${role}-`) ? [url] : [])).join(",");
  const make = async (role: Role, count: number): Promise<Program[]> => {
    const made: Program[] = [];
    const store = { ENGINE_OBJSTORE_ENDPOINT: await options.storeEndpoint(role) };
    for (let n = 1; n <= count; n++) {
      const name = `${role}-${n}`;
      const address = `127.0.0.1:${await freePort()}`;
      urls.set(name, `http://${address}`);
      const home = join(folder, name);
      mkdirSync(home, { recursive: true });
      const program = new Program({
        name,
        command: () => [process.execPath, entryOf(name), "server"],
        env: {
          ...inherited(process.env),
          ...common,
          ...store,
          ...roleEnvironment({ role, address, home, peersOf }),
        },
        logFile: join(logs, `${name}.log`),
        isReady: () => answers(`http://${address}/health`, systemClock),
      });
      programs.set(name, program);
      made.push(program);
    }
    return made;
  };
  for (const ofRank of Map.groupBy(ORDER, ({ rank }) => rank).values()) {
    const started: Program[] = [];
    for (const { role, count } of ofRank) started.push(...(await make(role, options.counts[role] ?? count)));
    await Promise.all(started.map((program) => program.start()));
  }
  return urls;
}

async function postgresProgram(path: string, logs: string): Promise<{ program: Program; url: string }> {
  const folder = new PostgresFolder(requirePostgresPrograms("").folder, path);
  folder.initialize({ user: POSTGRES_USER, isSynced: false, passages: [dirname(path)] });
  const port = await freePort();
  return {
    url: `postgres://${POSTGRES_USER}@127.0.0.1:${port}/postgres`,
    program: new Program({
      name: "postgres",
      command: () => folder.server(port, POSTGRES_SETTINGS),
      env: inherited(process.env),
      logFile: join(logs, "postgres.log"),
      isReady: () => serves({ kind: "command", command: folder.probe(port) }, systemClock),
      stopSignal: POSTGRES_STOP_SIGNAL,
      // A session that outlived the server would keep the next one from starting.
      crashesWhole: true,
    }),
  };
}

async function s3Program(
  folder: string,
  logs: string,
  moreFlags: readonly string[] = [],
): Promise<{ program: Program; endpoint: string }> {
  const binary = await findVersitygw();
  if (binary === undefined) throw new Error("there is no S3 server here: install Go, of which it is built");
  const [data, iam] = [join(folder, "data"), join(folder, "iam")];
  for (const path of [data, iam]) mkdirSync(path, { recursive: true });
  const endpoint = `http://127.0.0.1:${await freePort()}`;
  const flags = ["--port", new URL(endpoint).host, "--quiet", "--health", "/health", "--region", REGION, ...moreFlags];
  return {
    endpoint,
    program: new Program({
      name: "s3",
      command: () => [binary, ...flags, "--iam-dir", iam, "posix", data],
      env: { ...inherited(process.env), ROOT_ACCESS_KEY: KEYS.accessKeyId, ROOT_SECRET_KEY: KEYS.secretAccessKey },
      logFile: join(logs, "s3.log"),
      isReady: () => answers(`${endpoint}/health`, systemClock),
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
