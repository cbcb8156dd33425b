/*
 * oneTBB with its own ITT: a parallel_for, a flow graph whose nodes and graph have names, a task_group with a named
 * resumable part. Built with TBB_USE_PROFILING_TOOLS, so that TBB's headers tell ITT what they do.
 */
#define TBB_USE_PROFILING_TOOLS 1
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include <tbb/flow_graph.h>
#include <tbb/parallel_for.h>
#include <tbb/profiling.h>
#include <tbb/task_arena.h>

int main(int argc, char **argv)
{
	const int messages = argc > 1 ? atoi(argv[1]) : 20;
	std::atomic<long> sum{ 0 }, seen{ 0 };

	tbb::task_arena arena(2);
	arena.execute([&] {
		tbb::parallel_for(0, 1000, [&](int i) { sum += i; });
		tbb::flow::graph graph;
		tbb::flow::function_node<int, int> twice(graph, 1, [](int i) {
			tbb::profiling::event::emit("twice");
			return 2 * i;
		});
		tbb::flow::function_node<int> count(graph, 1, [&](int i) {
			seen += i;
			return tbb::flow::continue_msg();
		});
		tbb::flow::make_edge(twice, count);
		tbb::profiling::set_name(graph, "the graph");
		tbb::profiling::set_name(twice, "twice");
		tbb::profiling::set_name(count, "count");
		for (int i = 0; i < messages; i++)
			twice.try_put(i);
		graph.wait_for_all();
	});
	printf("process: %d\nsum %ld seen %ld\n", getpid(), sum.load(), seen.load());
	return 0;
}
