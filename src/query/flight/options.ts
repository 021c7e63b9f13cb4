import * as kinds from "../../config/kinds.ts";
import { option } from "../../config/option.ts";

/** Where Arrow Flight is served, and to whom. */
export const FLIGHT_OPTIONS = {
  grpcAddr: option({
    env: "ENGINE_GRPC_ADDR",
    toml: "server.grpc_addr",
    kind: kinds.addressOrOff,
    default: { host: "0.0.0.0", port: 9090 },
    side: "S",
    doc:
      "Where servers with the role `query` serve Arrow Flight; `off` disables it. `engine serve` takes 127.0.0.1:9090 " +
      "unless this is set, and goes on without Flight where that is taken.",
  }),
  grpcAuth: option({
    env: "ENGINE_GRPC_AUTH",
    toml: "server.grpc_auth",
    kind: kinds.bool,
    default: false,
    side: "S",
    doc:
      "Whether Arrow Flight asks for a token of the role `read` (metadata `authorization: Bearer <TOKEN>`). Without, " +
      "whoever reaches its address may read every table.",
  }),
} as const;
