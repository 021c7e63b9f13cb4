import type { Random } from "../../core/random.ts";
import type { Credentials } from "../credentials.ts";
import type { DeviceFlows } from "../oauth/device-flows.ts";
import type { OAuthFlows } from "../oauth/flows.ts";
import type { OAuthTokens } from "../oauth/tokens.ts";

/** What credentials work with. */
export type CredentialDeps = { credentials: Credentials };

/** What connecting accounts works with. */
export type OAuthDeps = {
  oauth: OAuthFlows;
  /** Where the page at the end leads back to; its window, and no other, is told of the result. */
  oauthReturnBase: string;
  random: Random;
};

/** What connecting the accounts of sandboxes works with. */
export type ConnectionDeps = CredentialDeps &
  OAuthDeps & {
    devices: DeviceFlows;
    tokens: OAuthTokens;
    /** Names of the providers that the operator has described. */
    listed: ReadonlySet<string>;
    /** Where callers may have browsers sent back to, besides the server's own callback. */
    redirectUris: readonly string[];
  };
