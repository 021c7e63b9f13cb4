import { onPostgres } from "../../../catalog/postgres/contract-server.test-kit.ts";
import { remoteDreamsContract } from "./store.test-kit.ts";

onPostgres("dreams on workers", (open) => remoteDreamsContract("postgres", open));
