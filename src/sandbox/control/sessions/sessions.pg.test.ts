import { onPostgres } from "../../../catalog/postgres/contract-server.test-kit.ts";
import { sessionsContract } from "./contract.test-kit.ts";

onPostgres("sessions", (open) => sessionsContract("postgres", open));
