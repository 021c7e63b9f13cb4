import type { Feature } from "../feature/feature.ts";
import type { ConnectionDeps } from "./routes/deps.ts";
import type { JobCredentialDeps } from "./routes/job-credential.ts";

/** Sealed credentials, OAuth, and the credentials of jobs. */
export const CREDENTIALS: Feature<{ access: ConnectionDeps; fabric: JobCredentialDeps }> = {
  name: "credentials",
  title: "Credentials",
  options: async () => (await import("./options.ts")).CREDENTIALS_OPTIONS,
  capabilities: async () => (await import("./capabilities.ts")).CREDENTIALS_CAPABILITIES,
  routes: async () => {
    const [{ CREDENTIAL_ROUTES }, { jobCredentialRoute }] = await Promise.all([
      import("./routes/credential-routes.ts"),
      import("./routes/job-credential.ts"),
    ]);
    return [
      { name: "credentials", answeredBy: "access", routes: CREDENTIAL_ROUTES },
      { name: "job credentials", answeredBy: "fabric", routes: [jobCredentialRoute] },
    ];
  },
};
