import type { CliContext } from "../client/context.ts";
import { withCatalog, type CatalogFlags } from "../client/catalog.ts";
import { CliError, EXIT } from "../client/failure.ts";

/** Seals all credentials of a catalog, variables of sandboxes and refresh tokens of browser sessions, with the current key. @throws CliError without a key. */
export async function rotateCredentials(
  context: CliContext,
  flags: CatalogFlags,
): Promise<{ rotated: number; sandboxes: number; sessions: number; failed: string[] }> {
  const { config } = await context.loadConfigQuietly({ catalogUrl: flags.catalogUrl });
  const [{ valuesOf }, { CREDENTIALS_OPTIONS }] = await Promise.all([
    import("../config/option.ts"),
    import("../credentials/options.ts"),
  ]);
  const { secretKey, secretKeysFormer } = valuesOf(CREDENTIALS_OPTIONS, config);
  if (secretKey === undefined) {
    throw new CliError("ENGINE_SECRET_KEY is not set: it is the key to seal with", EXIT.usage);
  }
  const [{ AuditLog }, { Credentials }, { keyringOf }, { uuidV7Source }, { resealEnvs }, { resealRefreshTokens }] =
    await Promise.all([
      import("../auth/audit.ts"),
      import("../credentials/credentials.ts"),
      import("../auth/sealing/keyring.ts"),
      import("../core/ids.ts"),
      import("../sandbox/control/scheduler/sealed-env.ts"),
      import("../auth/web/renewal.ts"),
    ]);
  const { clock, random } = context.deps;
  const newId = uuidV7Source(clock, random);
  const keyring = keyringOf(secretKey, secretKeysFormer);
  return await withCatalog(context, flags, "read", async ({ records }) => {
    const credentials = new Credentials({ records, newId, random, keyring, audit: new AuditLog(records, newId) });
    // Whoever may open the catalog is its operator.
    const { rotated, failed } = await credentials.rotate({
      caller: { subject: "engine", kind: "internal" },
      address: "",
      requestId: newId(),
    });
    const envs = await resealEnvs(records, { keyring, random });
    const sessions = await resealRefreshTokens(records, { keyring, random });
    return {
      rotated,
      sandboxes: envs.rotated,
      sessions,
      failed: [...failed, ...envs.failed.map((id) => `sandbox ${id}`)],
    };
  });
}
