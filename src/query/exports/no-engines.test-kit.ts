import type { QueryExportPorts } from "./export.ts";

const unexpected = (): Promise<never> => Promise.reject(new Error("no query engine is to be asked here"));

/** Of exports that run here. */
export const NO_ENGINES: Pick<QueryExportPorts, "remote" | "remoteJobs" | "publish"> = {
  remote: { run: unexpected },
  remoteJobs: { begun: unexpected, ended: unexpected, endAll: unexpected },
  publish: unexpected,
};
