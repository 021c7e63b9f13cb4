import * as kinds from "../../config/kinds.ts";
import { option, optional } from "../../config/option.ts";

const seconds = (max: number) => kinds.integer({ min: 0, max });
const DAY_SECS = 86_400;

const realm: kinds.Kind<string> = {
  accepts: "the name of a realm: a text on one line of at most 200 characters",
  label: "realm",
  parse: (text) => (text !== "" && text.length <= 200 && !/\p{Cc}/u.test(text) ? text : undefined),
  format: (value) => value,
};

/** Of cosines: from here to there. */
export type Band = { min: number; max: number };

const band: kinds.Kind<Band> = {
  accepts: "two numbers from 0 to 1 with a dash between them, the lower one first (0.90-0.97)",
  label: "range",
  parse: (text, context) => {
    const bounds = text.split("-");
    const [min, max] = bounds.map((bound) => kinds.share.parse(bound.trim(), context));
    return bounds.length !== 2 || min === undefined || max === undefined || min > max ? undefined : { min, max };
  },
  format: ({ min, max }) => `${boundText(min)}-${boundText(max)}`,
};

/** With two digits after the point where no more are needed. */
function boundText(bound: number): string {
  const short = bound.toFixed(2);
  return Number(short) === bound ? short : String(bound);
}

export const FILE_SYNC_OPTIONS = {
  // Found when it is used: a user without a home folder has no such files, and may serve.
  caHome: optional({
    env: "ENGINE_CA_HOME",
    toml: "filesync.home",
    kind: kinds.path,
    whenUnset: "`~/.claude`",
    side: "C",
    doc: "The home of the coding agent below which memory files are: `projects/<folder>/memory/*.md`.",
  }),
  caFileSync: option({
    env: "ENGINE_CA_FILE_SYNC",
    toml: "filesync.files",
    kind: kinds.bool,
    default: true,
    side: "C",
    doc: "`0` leaves files of coding agents alone: only the cloud is synced.",
  }),
  caSyncOnMcp: option({
    env: "ENGINE_CA_SYNC_ON_MCP",
    toml: "filesync.sync_on_mcp",
    kind: kinds.bool,
    default: true,
    side: "C",
    doc: "`0` skips the sync of files when `engine mcp` opens the engine.",
  }),
  caWatch: option({
    env: "ENGINE_CA_WATCH",
    toml: "filesync.watch",
    kind: kinds.bool,
    default: false,
    side: "C",
    doc: "`1` has `engine serve` sync files for as long as it runs.",
  }),
  caSyncPollSecs: option({
    env: "ENGINE_CA_SYNC_POLL_SECS",
    toml: "filesync.poll_secs",
    kind: kinds.integer({ min: 1, max: DAY_SECS }),
    default: 30,
    side: "C",
    doc: "Seconds between two passes of `engine sync --watch`, of its service and of `ENGINE_CA_WATCH`.",
  }),
  caCurate: option({
    env: "ENGINE_CA_CURATE",
    toml: "filesync.curate",
    kind: kinds.bool,
    default: true,
    side: "SC",
    doc:
      "`0` turns all curation off: nothing is reviewed, no duplicates are linked, memories get no files, and no language " +
      "model is asked whether memories say the same.",
  }),
  caStaleDays: option({
    env: "ENGINE_CA_STALE_DAYS",
    toml: "filesync.stale_days",
    kind: kinds.integer({ min: 1, max: 36_500 }),
    default: 90,
    side: "SC",
    doc: "Days after which a memory that nobody has changed is told of as stale.",
  }),
  caDupCosine: option({
    env: "ENGINE_CA_DUP_COSINE",
    toml: "filesync.dup_cosine",
    kind: band,
    default: { min: 0.9, max: 0.97 },
    side: "SC",
    doc: "How alike two memories are that may say the same, as a range of the cosine of their vectors: above it they do.",
  }),
  caPromote: option({
    env: "ENGINE_CA_PROMOTE",
    toml: "filesync.promote",
    kind: kinds.bool,
    default: true,
    side: "SC",
    doc: "`0` writes no files for memories that have none.",
  }),
  caPromoteMax: option({
    env: "ENGINE_CA_PROMOTE_MAX",
    toml: "filesync.promote_max",
    kind: kinds.integer({ min: 0, max: 1_000 }),
    default: 15,
    side: "SC",
    doc: "Memories of one project that get a file, at most.",
  }),
  caPromoteMinImportance: option({
    env: "ENGINE_CA_PROMOTE_MIN_IMPORTANCE",
    toml: "filesync.promote_min_importance",
    kind: kinds.share,
    default: 0.6,
    side: "SC",
    doc: "How important a memory must be to get a file.",
  }),
  caQuietWindow: option({
    env: "ENGINE_CA_QUIET_WINDOW",
    toml: "filesync.quiet_window",
    kind: seconds(DAY_SECS),
    default: 300,
    side: "SC",
    doc: "Seconds in which nobody must have changed a project's files or memories before memories get files.",
  }),
  caLockTtl: option({
    env: "ENGINE_CA_LOCK_TTL",
    toml: "filesync.lock_ttl",
    kind: kinds.integer({ min: 1, max: DAY_SECS }),
    default: 300,
    side: "C",
    doc: "Seconds after which a pass gives up and releases its lock. (A process that ends releases it at once.)",
  }),
  cloudUrl: optional({
    env: "ENGINE_CLOUD_URL",
    toml: "cloud.url",
    kind: kinds.baseUrl,
    whenUnset: "memories stay on this machine",
    side: "C",
    doc: "The server that memories are exchanged with, both ways.",
  }),
  cloudToken: optional({
    env: "ENGINE_CLOUD_TOKEN",
    toml: "cloud.token",
    kind: kinds.bearerToken,
    whenUnset: "none is sent",
    side: "C",
    secret: true,
    doc: "The token for it, of the role `write`.",
  }),
  syncRealm: optional({
    env: "ENGINE_SYNC_REALM",
    toml: "cloud.realm",
    kind: realm,
    whenUnset: "all that the token may see, without those of one user",
    side: "C",
    doc: "The realm that is exchanged with it.",
  }),
} as const;
