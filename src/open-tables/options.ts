import * as kinds from "../config/kinds.ts";
import { option, optional } from "../config/option.ts";

/** How other programs read tables in place. */
export const OPEN_TABLE_OPTIONS = {
  icebergCredentials: option({
    env: "ENGINE_ICEBERG_CREDENTIALS",
    toml: "iceberg.credentials",
    kind: kinds.oneOf(["none", "static"]),
    default: "none",
    relation: (mode, { values, shown }) =>
      mode === "static" &&
      (values["icebergAccessKeyId"] === undefined || values["icebergSecretAccessKey"] === undefined)
        ? `${shown("icebergCredentials")} needs ENGINE_ICEBERG_ACCESS_KEY_ID and ENGINE_ICEBERG_SECRET_ACCESS_KEY`
        : undefined,
    side: "S",
    doc:
      "What clients of the Iceberg catalog read the object store with: `none`, credentials that they bring; `static`, the " +
      "key pair below, handed out to clients that ask for one.",
  }),
  icebergAccessKeyId: optional({
    env: "ENGINE_ICEBERG_ACCESS_KEY_ID",
    toml: "iceberg.access_key_id",
    kind: kinds.accessKeyId,
    whenUnset: "nothing is handed out",
    side: "S",
    doc: "Key pair for `static`: whoever may read one table gets it, so it must allow reading only.",
  }),
  icebergSecretAccessKey: optional({
    env: "ENGINE_ICEBERG_SECRET_ACCESS_KEY",
    toml: "iceberg.secret_access_key",
    kind: kinds.secretAccessKey,
    whenUnset: "nothing is handed out",
    side: "S",
    secret: true,
    doc: "The secret of that key pair.",
  }),
  icebergHoldSecs: option({
    env: "ENGINE_ICEBERG_HOLD_SECS",
    toml: "iceberg.hold_secs",
    kind: kinds.integer({ min: 0, max: 86_400 }),
    default: 3_600,
    side: "S",
    doc:
      "Seconds for which the files of a table stay after an Iceberg client has loaded it, whatever merges and deletion do. " +
      "Readers that take longer rely on `ENGINE_PHYSICAL_GC_GRACE_SECS`.",
  }),
} as const;
