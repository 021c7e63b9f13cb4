import type { Config } from "../config/options.ts";
import type { RecordStore } from "../db/records.ts";

/** Something that this installation can do once it is set up: a page that needs it says what is missing. */
export type Capability = {
  /** Lower case, with `_`. */
  name: string;
  title: string;
  /** Why it is off, and what turns it on: a sentence, without a secret or an address. Undefined where it is on. */
  whyOff(context: CapabilityContext): Promise<string | undefined>;
};

export type CapabilityContext = {
  config: Config;
  records: Pick<RecordStore, "rows">;
  /** Why the answering process runs no sandboxes itself; undefined where it does. */
  whyNoSandboxes: () => string | undefined;
};
