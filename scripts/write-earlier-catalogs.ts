import { execFileSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { findPostgresPrograms } from "../src/db/postgres/server-programs.ts";
import { NO_FSYNC, startTestServer } from "../src/catalog/postgres/postgres.test-kit.ts";
import { cleanEnv, startEngine, type Engine } from "../test/support/engine.ts";
import { EARLIER, fixture, settings, type Driver, type Earlier } from "../test/upgrade/earlier.ts";
import { LATE_ROWS, Writer } from "../test/upgrade/writer.ts";

/**
 * Writes the catalogs of `test/upgrade/catalogs`: checks each commit out, runs it, fills it through its own HTTP and
 * command line, stops it, and packs its home. `node scripts/write-earlier-catalogs.ts [commit…]`; all without arguments.
 * Needs PostgreSQL, git, tar and the npm registry.
 */
const repository = fileURLToPath(new URL("..", import.meta.url));
const wanted = process.argv.slice(2);
const KEPT = ["facts.json", "catalog.db", "catalog.db-wal", "catalog.sql", "data"];
const MERGE_SOON = { ENGINE_COMPACTION_POLL_SECS: "1", ENGINE_COMPACTION_MIN_EXTENTS: "4" };

for (const earlier of EARLIER) {
  if (wanted.length > 0 && !wanted.includes(earlier.commit)) continue;
  await inCheckout(earlier.commit, async (checkout) => {
    await write(earlier, "sqlite", checkout, {});
    if (earlier.schema.postgres !== undefined) await onPostgres(earlier, checkout);
  });
}

async function inCheckout(commit: string, use: (checkout: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "engine-earlier-"));
  const checkout = join(folder, "checkout");
  try {
    execFileSync("git", ["worktree", "add", "--detach", checkout, commit], { cwd: repository, stdio: "ignore" });
    execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: checkout, stdio: "inherit" });
    await use(checkout);
  } finally {
    execFileSync("git", ["worktree", "remove", "--force", checkout], { cwd: repository });
    rmSync(folder, { recursive: true, force: true });
  }
}

async function onPostgres(earlier: Earlier, checkout: string): Promise<void> {
  const programs = findPostgresPrograms()?.folder;
  if (programs === undefined) throw new Error("there is no PostgreSQL here: install it (Debian: postgresql)");
  const server = await startTestServer(programs, NO_FSYNC);
  try {
    const url = await server.createDatabase();
    await write(earlier, "postgres", checkout, { ENGINE_CATALOG_URL: url }, (home) => {
      const flags = ["--schema=engine", "--no-owner", "--no-privileges", `--file=${join(home, "catalog.sql")}`];
      execFileSync(join(programs, "pg_dump"), [...flags, url]);
    });
  } finally {
    await server.stop();
  }
}

async function write(
  earlier: Earlier,
  driver: Driver,
  checkout: string,
  catalog: Record<string, string>,
  dump: (home: string) => void = () => {},
): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), "engine-earlier-home-"));
  try {
    const writer = await filled(earlier, home, checkout, catalog);
    dump(home);
    const facts = { ...writer.facts(), commit: earlier.commit, driver, schema: earlier.schema[driver] };
    const target = fixture(earlier.commit, driver);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(join(home, "facts.json"), `${JSON.stringify(facts, null, 2)}\n`);
    const kept = KEPT.filter((name) => existsSync(join(home, name)));
    execFileSync("tar", ["--owner=0", "--group=0", "-C", home, "-czf", target, ...kept]);
    console.log(`${earlier.commit} ${driver}: ${facts.answers.length} answers, ${facts.stagedRows} rows staged`);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

async function filled(
  earlier: Earlier,
  home: string,
  checkout: string,
  catalog: Record<string, string>,
): Promise<Writer> {
  const entry = join(checkout, "bin/engine.js");
  const env = { ...settings(earlier.has), ...catalog };
  const start = (more: Record<string, string>): Promise<Engine> =>
    startEngine({ home, entry, env: { ...env, ...more } });
  const engine = (...args: string[]): void => {
    execFileSync(process.execPath, [entry, ...args], { env: { ...cleanEnv(), ENGINE_HOME: home, ...env } });
  };
  const writer = new Writer(earlier.has, engine);
  const first = await start({ ENGINE_WRITE_FORMAT: "tlm", ...(earlier.has.includes("merges") && MERGE_SOON) });
  await writer.first(first.url);
  if (earlier.has.includes("merges")) await until(() => globSync(`${home}/data/**/merged/**/*.parquet`).length > 0);
  await first.stop();
  const second = await start({ ENGINE_WRITE_FORMAT: "parquet" });
  await writer.second(second.url);
  await writer.look(second.url);
  await second.stop();
  if (!earlier.has.includes("staged writes")) return writer;
  const third = await start({ ENGINE_INGEST_MODE: "staged" });
  await writer.stage(third.url);
  await third.stop("SIGKILL");
  const staged = globSync(`${home}/data/**/_staged/**/*`, { withFileTypes: true }).filter((entry) => entry.isFile());
  writer.stagedRows = staged.length > 0 ? LATE_ROWS : 0;
  return writer;
}

async function until(isSo: () => boolean): Promise<void> {
  for (let n = 0; n < 600; n++) {
    if (isSo()) return;
    await delay(100);
  }
  throw new Error("nothing was merged within a minute");
}
