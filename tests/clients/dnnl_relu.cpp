/*
 * oneDNN's C++ interface on the host: some element-wise primitives and a matrix product, each executed a
 * number of times. oneDNN calls ITT itself, by default.
 */
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
#include <unordered_map>

#include <dnnl.hpp>

using namespace dnnl;

int main(int argc, char **argv)
{
	const int rounds = argc > 1 ? atoi(argv[1]) : 4;
	engine cpu(engine::kind::cpu, 0);
	stream queue(cpu);
	auto square = memory::desc({ 64, 64 }, memory::data_type::f32, memory::format_tag::ab);
	memory a(square, cpu), b(square, cpu), c(square, cpu);

	for (memory *m : { &a, &b, &c })
		for (int i = 0; i < 64 * 64; i++)
			static_cast<float *>(m->get_data_handle())[i] = 1;
	auto product = matmul(matmul::primitive_desc(matmul::desc(square, square, square), cpu));
	auto relu = eltwise_forward(eltwise_forward::primitive_desc(
		eltwise_forward::desc(prop_kind::forward_inference, algorithm::eltwise_relu, square, 0.f), cpu));
	for (int i = 0; i < rounds; i++) {
		product.execute(queue, { { DNNL_ARG_SRC, a }, { DNNL_ARG_WEIGHTS, b }, { DNNL_ARG_DST, c } });
		relu.execute(queue, { { DNNL_ARG_SRC, c }, { DNNL_ARG_DST, a } });
	}
	queue.wait();
	printf("process: %d\n", getpid());
	printf("expected: %d tasks dnnl::primitive::execute::matmul\n", rounds);
	printf("expected: %d tasks dnnl::primitive::execute::eltwise\n", rounds);
	return 0;
}
