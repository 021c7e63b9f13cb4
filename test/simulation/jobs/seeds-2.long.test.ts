import { testJobSeeds } from "./seeds.test-kit.ts";

testJobSeeds(100);
