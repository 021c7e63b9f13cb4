import { onPostgres } from "../../../catalog/postgres/contract-server.test-kit.ts";
import { sweepContract } from "./sweep.test-kit.ts";

onPostgres("sweep of memories", (open) => sweepContract("postgres", open));
