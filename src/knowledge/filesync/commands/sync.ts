import { resolve } from "node:path";
import { AuditLog } from "../../../auth/audit.ts";
import { withCatalog } from "../../../client/catalog.ts";
import { countText } from "../../../client/api.ts";
import type { RegisterCommand } from "../../../client/command.ts";
import type { CliContext } from "../../../client/context.ts";
import { withExamples } from "../../../client/examples.ts";
import { CliError, EXIT } from "../../../client/failure.ts";
import { visible } from "../../../client/text.ts";
import { valuesOf } from "../../../config/option.ts";
import type { Config } from "../../../config/options.ts";
import { pause } from "../../../core/clock.ts";
import { uuidV7Source } from "../../../core/ids.ts";
import { createMetrics } from "../../../core/metrics.ts";
import { onStopSignal } from "../../../core/stop-signal.ts";
import { openMemory } from "../../memory/open.ts";
import { isWell, type FileSync, type PassRequest, type PassResult } from "../file-sync.ts";
import { projectOf } from "../folder.ts";
import { openFileSync } from "../open.ts";
import { FILE_SYNC_OPTIONS } from "../options.ts";

type Flags = {
  watch?: true;
  dryRun?: true;
  ccOnly?: true;
  cloudOnly?: true;
  project?: string;
  json?: true;
};

export const register: RegisterCommand = (program, context) => {
  const command = program
    .command("sync")
    .description(
      "Bring memories and the memory files of coding agents in step, and exchange memories with the server of " +
        "ENGINE_CLOUD_URL where that is set (talks to the catalog directly, also beside a running server).",
    )
    .option("--watch", "again and again, every ENGINE_CA_SYNC_POLL_SECS seconds, until it is told to stop")
    .option("--dry-run", "say what would be done, and change nothing")
    .option("--cc-only", "only files")
    .option("--cloud-only", "only the server of ENGINE_CLOUD_URL")
    .option("--project <path>", "only the files of the project in this folder")
    .option("--json", "print JSON: one line for each pass");
  withExamples(command, [
    "engine sync --dry-run",
    "engine sync --project . --cc-only",
    "ENGINE_CLOUD_URL=https://engine.example.com ENGINE_CLOUD_TOKEN=… engine sync --watch",
  ]).action(context.action((flags: Flags) => sync(context, flags)));
};

async function sync(context: CliContext, flags: Flags): Promise<number> {
  if (flags.ccOnly && flags.cloudOnly) throw new CliError("--cc-only and --cloud-only exclude each other", EXIT.usage);
  if (flags.watch && flags.dryRun) throw new CliError("--watch and --dry-run exclude each other", EXIT.usage);
  const { config } = await context.loadConfig({});
  const { caFileSync, cloudUrl, caSyncPollSecs } = valuesOf(FILE_SYNC_OPTIONS, config);
  if (flags.cloudOnly && cloudUrl === undefined) {
    throw new CliError("--cloud-only needs a server: set ENGINE_CLOUD_URL", EXIT.usage);
  }
  const stop = new AbortController();
  const off = onStopSignal(() => stop.abort());
  const request: PassRequest = {
    withFiles: caFileSync && flags.cloudOnly !== true,
    withCloud: flags.ccOnly !== true,
    project: flags.project === undefined ? undefined : projectOf(resolve(flags.project)),
    isDry: flags.dryRun === true,
    signal: stop.signal,
  };
  try {
    if (flags.watch !== true) {
      const result = await onePass(context, config, request);
      if (result === undefined) throw new CliError("another process is syncing at the moment; try again");
      await show(context, result, flags);
      return isWell(result) ? EXIT.ok : EXIT.failed;
    }
    let findings = "";
    while (!stop.signal.aborted) {
      const result = await onePass(context, config, request);
      const found = JSON.stringify(result?.projects.map(({ project, review }) => [project, review]) ?? []);
      if (result !== undefined && (hasNews(result) || found !== findings)) await show(context, result, flags);
      findings = found;
      await pause(context.deps.clock, caSyncPollSecs * 1_000, stop.signal);
    }
    return EXIT.ok;
  } finally {
    off();
  }
}

/** The catalog is open for as long as a pass takes. */
async function onePass(context: CliContext, config: Config, request: PassRequest): Promise<PassResult | undefined> {
  return await withFileSync(context, config, (files) => files.pass(request));
}

/** Runs a task with the sync of this machine's files. */
async function withFileSync<T>(context: CliContext, config: Config, task: (files: FileSync) => Promise<T>): Promise<T> {
  const { clock, random, version } = context.deps;
  return await withCatalog(context, {}, "write", async (catalog) => {
    const newId = uuidV7Source(clock, random);
    const { records } = catalog;
    const audit = new AuditLog(records, newId);
    const memory = openMemory({ catalog, records, clock, random, newId, metrics: createMetrics(), audit });
    return await task(openFileSync(config, { memory, records, clock, random, version }));
  });
}

function hasNews({ projects, cloud }: PassResult): boolean {
  const isCloudNews = cloud !== undefined && (cloud.pulled > 0 || cloud.pushed > 0 || cloud.error !== undefined);
  return isCloudNews || projects.some(({ done, error }) => done.length > 0 || error !== undefined);
}

function hasFindings({ projects }: PassResult): boolean {
  return projects.some(({ review }) => review.stale_count + review.duplicate_count > 0);
}

async function show(context: CliContext, result: PassResult, { json, dryRun }: Flags): Promise<void> {
  if (json) return await context.write(`${JSON.stringify(result)}\n`);
  const would = dryRun ? "would be " : "";
  for (const { project, done, review, error } of result.projects) {
    for (const { file, action, reason } of done) {
      const why = reason === undefined ? "" : `: ${reason}`;
      await context.writeLine(
        visible(`${project}/${file}  ${action === "skipped" ? "" : would}${WORDS[action]}${why}`),
      );
    }
    for (const line of reviewLines(review)) await context.writeLine(visible(`${project}  ${line}`));
    if (error !== undefined) context.warn(visible(`${project}: ${error}`));
  }
  const { cloud } = result;
  if (cloud?.error !== undefined) context.warn(visible(cloud.error));
  else if (cloud !== undefined) {
    await context.writeLine(`${countText(cloud.pulled, "record")} came, ${countText(cloud.pushed, "record")} went`);
  }
  if (!hasNews(result) && cloud === undefined && !hasFindings(result)) await context.writeLine("nothing has changed");
}

function reviewLines({ stale, duplicates, ...counts }: PassResult["projects"][number]["review"]): string[] {
  const lines = stale.map((one) => `stale: ${titleIn(one)} has not been changed since ${one.changed_at.slice(0, 10)}`);
  for (const { of, cosine, is, ...one } of duplicates) {
    const likeness = cosine === null ? "" : ` (cosine ${cosine})`;
    lines.push(`${is === "linked" ? "duplicate" : "possible duplicate"}: ${titleIn(one)} of ${titleIn(of)}${likeness}`);
  }
  const more = counts.stale_count + counts.duplicate_count - lines.length;
  return more > 0 ? [...lines, `and ${more} more`] : lines;
}

function titleIn({ id, name, file }: { id: string; name: string; file?: string | undefined }): string {
  return `${JSON.stringify(name)} (${file ?? id})`;
}

const WORDS = {
  saved: "saved in the memory",
  invalidated: "invalidated in the memory",
  written: "written",
  removed: "removed",
  promoted: "written for a memory without a file",
  conflict: "kept on both sides, which had changed",
  skipped: "left alone",
} as const;
