import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { freePort } from "../../src/core/waiting.test-kit.ts";
import { PostgresFolder } from "../../src/db/postgres/server-folder.ts";
import { membersOf, type Role } from "../../src/deploy/local/layout.ts";
import { POSTGRES_USER, requirePostgresPrograms } from "../../src/deploy/local/postgres.ts";
import {
  describePostgres,
  describeServers,
  inherited,
  urlsOf,
  type Description,
  type Place,
} from "../../src/deploy/local/programs.ts";
import type { S3Connection } from "../../src/io/objectstore/s3/client.ts";
import type { MeddlingProxy } from "../../src/io/objectstore/s3/meddling-proxy.test-kit.ts";
import { CREDENTIALS, findVersitygw, versitygwCommand } from "../../src/io/objectstore/s3/versitygw.test-kit.ts";
import { Program } from "./program.ts";

/**
 * A cluster to be broken, in a temporary folder: the programs of a local deployment (`src/deploy/local`), each in the hands
 * of the test. A supervisor would start again at once what a test has killed, and `engine deploy` has neither an S3 server,
 * nor something that meddles between a role and the store, nor other numbers of servers, nor two versions by plan: that
 * is what is added here.
 */
export type LocalCluster = {
  /** Where its data and its logs (`logs/<name>.log`) are. */
  folder: string;
  /** Base addresses that clients use. */
  edges: readonly string[];
  /** All processes by name: `postgres`, `s3`, `edge-1`, `query-1`, `ingest-1`, `committer-1`, `compaction-1`, … */
  programs: ReadonlyMap<string, Program>;
  /** Base address of each server, by name. */
  urls: ReadonlyMap<string, string>;
  /** Address of the catalog. */
  catalogUrl: string;
  /** The bucket and how to reach it, directly. */
  store: S3Connection;
  /** Kills everything. The folder goes too, unless it is to be looked at. */
  giveUp(folder?: "kept"): Promise<void>;
};

export type LocalClusterOptions = {
  /** Settings of every server on top of the usual ones. */
  env?: Readonly<Record<string, string>>;
  /** Starts what stands between the servers of a role and the S3 server; undefined where nothing does. */
  proxy?: (endpoint: string, role: Role) => Promise<MeddlingProxy | undefined>;
  /** Words of the S3 server's command line on top of the usual ones. */
  storeFlags?: readonly string[];
  /** How many of each role. */
  counts?: Partial<Record<Role, number>>;
  /** The program that a server runs, asked at each of its starts; that of this checkout unless given. */
  entryOf?: (name: string) => string;
};

/** The program of this checkout. */
export const TODAY = fileURLToPath(new URL("../../bin/engine.js", import.meta.url));

const REGION = "us-east-1";
const BUCKET = "engine";
const STOP_TIMEOUT_MS = 30_000;

/** Starts everything and waits until all of it serves; rejects, with nothing left running, when a part does not. */
export async function startLocalCluster({
  env = {},
  proxy,
  counts = {},
  storeFlags = [],
  entryOf = () => TODAY,
}: LocalClusterOptions): Promise<LocalCluster> {
  // Not in a folder of another's: PostgreSQL's user must come through.
  const folder = mkdtempSync(join(tmpdir(), "engine-cluster-"));
  const programs = new Map<string, Program>();
  const proxies = new Set<MeddlingProxy>();
  const giveUp = async (what?: "kept") => {
    await Promise.all([...programs.values()].map((program) => program.kill()));
    for (const one of proxies) await one.close();
    if (what !== "kept") rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
  const start = async (made: readonly Program[]) => {
    for (const program of made) programs.set(program.name, program);
    await Promise.all(made.map((program) => program.start()));
  };
  try {
    mkdirSync(join(folder, "logs"));
    const members = membersOf(counts);
    const ports = await portsFor(["postgres", "s3", ...members.map(({ name }) => name)]);
    const place = { folder, ports };
    const endpoint = `http://127.0.0.1:${ports["s3"]}`;
    await start([postgresIn(place), Program.of(await describeStore(place, storeFlags))]);
    await makeBucket(endpoint);
    const endpoints = new Map<Role, string>();
    for (const role of new Set(members.map((member) => member.role))) {
      const between = await proxy?.(endpoint, role);
      if (between !== undefined) proxies.add(between);
      endpoints.set(role, between?.endpoint ?? endpoint);
    }
    const catalogUrl = `postgres://${POSTGRES_USER}@127.0.0.1:${ports["postgres"]}/postgres`;
    const common = {
      ...inherited(process.env),
      ...env,
      ENGINE_CATALOG_URL: catalogUrl,
      ENGINE_OBJSTORE_REGION: REGION,
      ENGINE_OBJSTORE_BUCKET: BUCKET,
      ENGINE_OBJSTORE_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
      ENGINE_OBJSTORE_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
    };
    const options = { program: [process.execPath, TODAY], env: common, stopTimeoutMs: STOP_TIMEOUT_MS };
    const servers = describeServers(members, place, options).map((server, i) => {
      const ENGINE_OBJSTORE_ENDPOINT = endpoints.get(members[i]?.role ?? "edge") ?? endpoint;
      const described = { ...server, env: { ...server.env, ENGINE_OBJSTORE_ENDPOINT } };
      const command = (): Description["command"] => [process.execPath, entryOf(server.name), "server"];
      return { rank: server.rank, program: Program.of(described, { command }) };
    });
    for (const ofRank of Map.groupBy(servers, ({ rank }) => rank).values()) {
      await start(ofRank.map(({ program }) => program));
    }
    return {
      folder,
      edges: urlsOf("edge", members, ports),
      programs,
      urls: new Map(members.map(({ name }) => [name, `http://127.0.0.1:${ports[name]}`])),
      catalogUrl,
      store: { endpoint, region: REGION, bucket: BUCKET, credentials: CREDENTIALS, pathStyle: true, allowHttp: true },
      giveUp,
    };
  } catch (error) {
    await giveUp();
    throw error;
  }
}

/** From the block of this process: files of tests start clusters at the same time. */
async function portsFor(names: readonly string[]): Promise<Record<string, number>> {
  const ports: Record<string, number> = {};
  for (const name of names) ports[name] = await freePort();
  return ports;
}

/** Whoever reaches it may be anybody. */
function postgresIn(place: Place): Program {
  const server = new PostgresFolder(requirePostgresPrograms("").folder, join(place.folder, "postgres"));
  server.initialize({ user: POSTGRES_USER, isSynced: false, passages: [place.folder] });
  // A session that outlived the server would keep the next one from starting.
  return Program.of(describePostgres(server, place, inherited(process.env)), { crashesWhole: true });
}

async function describeStore({ folder, ports }: Place, flags: readonly string[]): Promise<Description> {
  const binary = await findVersitygw();
  if (binary === undefined) throw new Error("there is no S3 server here: install Go, of which it is built");
  const { s3: port = 0 } = ports;
  const kept = join(folder, "s3");
  for (const path of [join(kept, "data"), join(kept, "iam")]) mkdirSync(path, { recursive: true });
  const health = ["--health", "/health"];
  const { command, env } = versitygwCommand(binary, {
    folder: kept,
    port,
    region: REGION,
    flags: [...health, ...flags],
  });
  return {
    name: "s3",
    rank: 0,
    command,
    env: { ...inherited(process.env), ...env },
    log: join(folder, "logs", "s3.log"),
    probe: { kind: "http", url: `http://127.0.0.1:${port}/health` },
    stopSignal: "SIGTERM",
    stopTimeoutMs: STOP_TIMEOUT_MS,
  };
}

async function makeBucket(endpoint: string): Promise<void> {
  const client = new S3Client({ endpoint, region: REGION, credentials: CREDENTIALS, forcePathStyle: true });
  try {
    await client.send(new CreateBucketCommand({ Bucket: BUCKET }));
  } finally {
    client.destroy();
  }
}
