import { z } from "zod";
import { nameSchemas } from "../server/schema-names.ts";

/** What a page needs to offer signing in. */
export const authConfig = z.object({
  backend: z.enum(["env", "session", "idp", "oidc"]),
  enabled: z.boolean().describe("Whether callers must show a token."),
  password_login: z.boolean().describe("Whether `/v1/auth/login` signs anyone in."),
  identity_provider: z
    .object({ url: z.string(), public_key: z.string().nullable(), providers: z.array(z.string()) })
    .nullable(),
  issuers: z.array(z.string()),
  ways: z
    .array(z.object({ provider: z.string(), title: z.string() }))
    .describe("What else signs a browser in: a button for each, which opens `/v1/auth/web/start?provider=…`."),
});

export type AuthConfig = z.output<typeof authConfig>;

nameSchemas({ AuthConfig: authConfig });
