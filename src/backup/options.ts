import { join } from "node:path";
import * as kinds from "../config/kinds.ts";
import { derived, optional } from "../config/option.ts";
import { parseDestination } from "./destination.ts";

/** The options of the feature. */
export const BACKUP_OPTIONS = {
  backupDestinations: derived({
    env: "ENGINE_BACKUP_DESTINATIONS",
    toml: "backup.destinations",
    kind: kinds.listOf({
      item: (text) => (parseDestination(text) === undefined ? undefined : text),
      accepts: "absolute folders and s3://BUCKET/PREFIX, separated by commas",
      label: "list of folders and `s3://BUCKET/PREFIX`",
    }),
    defaultShown: "$ENGINE_HOME/backups",
    derivedFrom: "home",
    defaultOf: ({ home }) => [join(home, "backups")],
    side: "S",
    doc:
      "Where jobs may write backups: these places, and whatever lies below them. A backup that a command makes by itself, " +
      "without a server, may go anywhere.",
  }),
  backupEndpoint: optional({
    env: "ENGINE_BACKUP_ENDPOINT",
    toml: "backup.endpoint",
    kind: kinds.baseUrl,
    whenUnset: "that of the object store",
    side: "SC",
    doc: "Address of the S3 server of `s3://` destinations. With it the credentials are those below, not the object store's.",
  }),
  backupRegion: optional({
    env: "ENGINE_BACKUP_REGION",
    toml: "backup.region",
    kind: kinds.regionName,
    whenUnset: "that of the object store",
    side: "SC",
    doc: "Its region.",
  }),
  backupAccessKeyId: optional({
    env: "ENGINE_BACKUP_ACCESS_KEY_ID",
    toml: "backup.access_key_id",
    kind: kinds.accessKeyId,
    whenUnset: "the object store's",
    side: "SC",
    doc: "Access key for `s3://` destinations.",
  }),
  backupSecretAccessKey: optional({
    env: "ENGINE_BACKUP_SECRET_ACCESS_KEY",
    toml: "backup.secret_access_key",
    kind: kinds.secretAccessKey,
    whenUnset: "the object store's",
    side: "SC",
    secret: true,
    doc: "Its secret key; set both keys or neither.",
  }),
};
