"""Which device each rank is to use, under Slurm with task/affinity: it is asked in the forked process of each rank, as the
job's user, when that is bound.

The machine is a recorded one of two sockets with a processor and two HCAs each, whose processors this machine has.
"""
import os
import shutil
import unittest

import lab
import launchers
import test_launch
import test_launch_host as host
import test_where

CHOICE = [f"mlx5_{n}" for n in (0, 2, 1, 3) * 3]  # ranks are bound to the sockets in turn


class Bound(test_where.Machine):
    shape = {"cores": 1, "threads": 1}

    @classmethod
    def setUpClass(cls):
        lab.require_component()
        if not {0, 1} <= os.sched_getaffinity(0):
            raise unittest.SkipTest("processors 0 and 1 are not ours")
        super().setUpClass()
        cls.cluster = launchers.Cluster(["node1"])
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.install(test_launch.COMPONENT)
        cls.cluster.publish(cls.daemon)
        prolog = os.path.join(cls.cluster.dir, "prolog")
        shutil.copy(os.path.join(lab.ROOT, "system", "slurm-task-prolog"), prolog)
        cls.slurm = launchers.slurm(cls.cluster, task="task/affinity", conf=f"TaskProlog={prolog}\n")

    def started(self, **options):
        """What each rank finds in its environment."""
        folder = lab.tmpdir()
        os.chmod(folder, 0o777)
        done = self.slurm.run(12, ["/bin/sh", "-c", f"env > {folder}/$SLURM_PROCID"],
                              more=("--cpu-bind=map_cpu:0,1",), **options)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        found = []
        for rank in range(12):
            with open(os.path.join(folder, str(rank)), encoding="utf-8") as file:
                found.append(dict(line.split("=", 1) for line in file.read().splitlines() if "=" in line))
        return [{name: value for name, value in one.items() if name in host.NAMES} for one in found]

    def test_each_rank_has_the_nearest(self):
        """And what a user has set stays."""
        self.assertEqual(self.started(), [{}] * 12)
        self.cluster.configure(f"pmdl_fabricd_env = {host.ALL}")
        self.addCleanup(self.cluster.configure)
        self.assertEqual(self.started(user="nobody"), host.variables(CHOICE))
        mine = {"UCX_NET_DEVICES": "mlx5_9:1", "NCCL_IB_HCA": ""}
        self.assertEqual(self.started(env=mine), [{**one, **mine} for one in host.variables(CHOICE)])
        self.assertEqual({tuple(sorted(one)) for one in self.started(env={
            "UCX_TLS": "tcp", "FI_VERBS_IFACE": "ib0", "PSM3_HAL": "sockets", "NVSHMEM_HCA_PE_MAPPING": "mlx5_9:1:2"})}, {("NCCL_IB_HCA",)})


if __name__ == "__main__":
    unittest.main()
