/** Spark, Trino and ClickHouse as clients of the Iceberg catalog, set up as docs/open-tables.md says. */
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { endsWithThisProcess } from "../../src/core/child-processes.test-kit.ts";
import { installedBy } from "../../src/core/gates.test-kit.ts";
import { eventually, freePort } from "../../src/core/waiting.test-kit.ts";
import type { Versitygw } from "../../src/io/objectstore/s3/versitygw.test-kit.ts";
import { cleanEnv } from "../support/engine.ts";
import { startClient, type Client } from "./readers.test-kit.ts";

const SCRIPT = fileURLToPath(new URL("engines.py", import.meta.url));
const DOCUMENT = new URL("../../docs/open-tables.md", import.meta.url);

/** The folder that `.ci/install-iceberg-engines` fills; undefined where it cannot, which is an error in CI. */
export function findEngines(): string | undefined {
  const folder = installedBy("install-iceberg-engines", "Java", "Maven", "python3-venv");
  if (folder === undefined && process.env["CI"] === "true") throw new Error("Spark, Trino and ClickHouse are missing");
  return folder;
}

/** What `engines.py` is asked. */
export type EngineAsk =
  | { table: string; catalog: string; snapshot?: number; sql?: string; write?: true }
  | { run: string };
export type Engine = Client<EngineAsk>;

/** A server as clients reach it. */
export type Place = { url: string; token: string; s3?: Pick<Versitygw, "endpoint" | "credentials"> };

/**
 * The blocks of code that the document has for a client, with this server, its token and its S3 store in the place of those
 * of the document.
 */
export function documented(client: string, { url, token, s3 }: Place): string[] {
  const text = readFileSync(DOCUMENT, "utf8");
  const section = text.split(/^\*\*/m).find((part) => part.startsWith(`${client}**`));
  if (section === undefined) throw new Error(`${client} is not in the document`);
  const blocks = section.split("```").filter((_part, i) => i % 2 === 1);
  return blocks.map((block) =>
    block
      .slice(block.indexOf("\n") + 1)
      .replaceAll("http://127.0.0.1:7777", url)
      .replaceAll("TOKEN", token)
      .replaceAll("http://127.0.0.1:9000", s3?.endpoint ?? "http://127.0.0.1:9000")
      .replaceAll(/\bKEY\b/g, s3?.credentials.accessKeyId ?? "KEY")
      .replaceAll(/\bSECRET\b/g, s3?.credentials.secretAccessKey ?? "SECRET"),
  );
}

/** Spark with a version of Iceberg; its catalog `lake` is of a server on a disk, `bucket` of one on a bucket. */
export function startSpark(
  folder: string,
  iceberg: string,
  { lake, bucket, settings: more }: { lake: Place; bucket?: Place; settings?: Record<string, string> },
): Engine {
  const settings = {
    ...more,
    ...sparkCatalog("lake", documented("Spark", lake).slice(0, 1)),
    ...(bucket !== undefined && sparkCatalog("bucket", documented("Spark", bucket))),
    "spark.jars": [
      join(folder, `iceberg-${iceberg}.jar`),
      ...(bucket === undefined ? [] : [join(folder, `iceberg-aws-${iceberg}.jar`)]),
    ].join(","),
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
  };
  return startClient(join(folder, "bin/python"), [SCRIPT, "spark", JSON.stringify(settings)]);
}

/** What the blocks of the document set, for a catalog of that name. */
function sparkCatalog(name: string, blocks: readonly string[]): Record<string, string> {
  const settings: Record<string, string> = {};
  for (const line of blocks.join("\n").split("\n")) {
    const [key = "", value = ""] = line.split(/\s+/);
    if (key.startsWith("spark.")) settings[key.replace("spark.sql.catalog.lake", `spark.sql.catalog.${name}`)] = value;
  }
  return settings;
}

/** ClickHouse in a process, which keeps its own in `home`; its catalogs are `lake`, with keys from the server, and `own`, with those that it is given. */
export function startClickHouse(folder: string, place: Place, home: string): Engine {
  const { url, token } = place;
  const [handedOut = ""] = documented("ClickHouse", { url, token }).map(firstStatement);
  const [, own = ""] = documented("ClickHouse", place).map(firstStatement);
  const statements = [
    "SET allow_database_iceberg = 1, allow_insert_into_iceberg = 1, cast_keep_nullable = 1, session_timezone = 'UTC'",
    handedOut,
    own,
  ];
  return startClient(join(folder, "bin/python"), [SCRIPT, "clickhouse", JSON.stringify({ statements, folder: home })]);
}

const firstStatement = (block: string): string => block.split(";")[0] ?? "";

export type Trino = { url: string; client: Engine; stop(): Promise<void> };

/** Trino with catalogs by their names, each given by its properties. */
export async function startTrino(folder: string, catalogs: Record<string, string>): Promise<Trino> {
  const home = await mkdtemp(join(tmpdir(), "engine-trino-"));
  const port = await freePort();
  await mkdir(join(home, "catalog"));
  for (const [name, properties] of Object.entries(catalogs)) {
    await writeFile(join(home, "catalog", `${name}.properties`), properties);
  }
  await writeFile(
    join(home, "config.properties"),
    [
      "coordinator=true",
      "node-scheduler.include-coordinator=true",
      "node.bind-ip=127.0.0.1",
      `http-server.http.port=${port}`,
      "node.internal-address=127.0.0.1",
      `discovery.uri=http://127.0.0.1:${port}`,
      "query.max-memory=400MB",
      "query.max-memory-per-node=400MB",
      "memory.heap-headroom-per-node=200MB",
    ].join("\n"),
  );
  const trino = join(folder, "trino");
  const properties = {
    "jdk.attach.allowAttachSelf": "true",
    "node.environment": "test",
    "node.id": "test",
    "node.data-dir": home,
    config: join(home, "config.properties"),
    "plugin.dir": join(trino, "plugin"),
    "catalog.config-dir": join(home, "catalog"),
  };
  const args = [
    "-cp",
    join(trino, "lib/*"),
    "-Xmx1g",
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    ...Object.entries(properties).map(([key, value]) => `-D${key}=${value}`),
    "io.trino.server.TrinoServer",
  ];
  const server = endsWithThisProcess(
    spawn(join(folder, "java/bin/java"), args, { env: cleanEnv(), cwd: home, stdio: ["ignore", "pipe", "pipe"] }),
  );
  let log = "";
  for (const stream of [server.stdout, server.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (log = (log + text).slice(-LOG_CHARS)));
  }
  const gone = new Promise<void>((resolve) => server.once("exit", () => resolve()));
  const end = async (): Promise<void> => {
    server.kill("SIGKILL");
    await gone;
    await rm(home, { recursive: true, maxRetries: 3 });
  };
  try {
    await eventually(async () => {
      if (server.exitCode !== null) throw new Error(`Trino ended: ${log}`);
      return await isReady(port);
    }, START_MS);
  } catch (error) {
    await end();
    throw error;
  }
  const client = startClient<EngineAsk>(join(folder, "bin/python"), [SCRIPT, "trino", JSON.stringify({ port })]);
  return {
    url: `http://127.0.0.1:${port}`,
    client,
    async stop() {
      client.close();
      await end();
    },
  };
}

const LOG_CHARS = 8_000;
/** For a machine on which others start beside it. */
const START_MS = 180_000;

async function isReady(port: number): Promise<boolean> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/info`);
    return answer.ok && !((await answer.json()) as { starting: boolean }).starting;
  } catch {
    return false;
  }
}
